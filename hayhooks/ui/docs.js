// /docs: what /openapi.json says, to read.

import { call, onMissingKey } from "./api.js";
import { h, kept } from "./dom.js";
import { failed } from "./failure.js";

const main = document.querySelector("main");
let schemas = {};

onMissingKey(() => new Promise((resolve) => {
  const field = h("input", { type: "password", id: "key", autocomplete: "off", required: true });
  main.replaceChildren(h("h1", "Shiguan"), h("form", { submit: (event) => { event.preventDefault(); kept("key", field.value.trim()); resolve(field.value); } },
    h("label", { for: "key" }, "API key"), h("div.line", field, h("button", { type: "submit" }, "Show the interface"))));
}));

const resolved = (schema) => (schema?.$ref ? schemas[schema.$ref.split("/").pop()] ?? {} : schema ?? {});

const worded = (text) => text.split("`").map((part, place) => (place % 2 ? h("code", part) : part));

function kind(schema) {
  const one = resolved(schema);
  const many = one.anyOf ?? one.oneOf;
  if (many) return many.map(kind).join(" | ");
  if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (one.type === "array") return `list of ${kind(one.items)}`;
  return one.title && one.properties ? one.title : [one.type].flat().join(" | ") || "any";
}

function fields(rows) {
  return rows.length > 0 && h("div.table", { tabindex: "0", role: "group", "aria-label": "Fields" }, h("table", h("tbody", rows.map(([name, needed, type, about]) => h("tr",
    h("td", h("code", name)), h("td", needed ? "required" : ""), h("td", type), h("td", about))))));
}

function operation(path, method, told) {
  const body = Object.entries(told.requestBody?.content ?? {})[0];
  const reply = Object.entries(told.responses).find(([status]) => status.startsWith("2"));
  const shown = Object.entries(reply?.[1].content ?? {})[0];
  const schema = body && resolved(body[1].schema);
  const example = (value) => value && h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2));
  return h("details.operation", h("summary", h("code", `${method.toUpperCase()} ${path}`), " ", told.summary ?? ""),
    (told.description ?? "").split("\n\n").map((part) => h("p", worded(part))),
    told.parameters && h("h3", "Parameters"), told.parameters && fields(told.parameters.map((one) => [one.name, one.required, kind(one.schema), one.description ?? one.schema?.description ?? ""])),
    schema && h("h3", `Body (${body[0]})`),
    schema && fields(Object.entries(schema.properties ?? {}).map(([name, one]) => [name, schema.required?.includes(name), kind(one), one.description ?? ""])),
    example(body?.[1].example), reply && h("h3", `Reply ${reply[0]}${shown ? ` (${shown[0]})` : ""}`),
    reply && reply[1].description !== "Successful Response" && reply[1].description.split("\n").map((part) => h("p", worded(part))), example(shown?.[1].example));
}

try {
  const api = await call("/openapi.json");
  schemas = api.components.schemas;
  const order = ["rag", "library", "documents", "conversations", "receipts", "openai"];
  const rank = ([name]) => (order.includes(name) ? order.indexOf(name) : order.length);
  const groups = Map.groupBy(Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, told]) => [path, method, told])), ([, , told]) => told.tags?.[0] ?? "hayhooks");
  main.replaceChildren(h("h1", `${api.info.title} ${api.info.version}`), ...api.info.description.split("\n\n").map((part) => h("p", worded(part))),
    h("p", "Keys: ", h("code", "Authorization: Bearer KEY"), " or ", h("code", "X-API-Key: KEY"), ". ", h("a", { href: "/openapi.json" }, "openapi.json"), " · ", h("a", { href: "/" }, "the page")),
    ...[...groups].sort((one, other) => rank(one) - rank(other)).map(([name, list]) => h("section", h("h2", name), list.map((one) => operation(...one)))));
} catch (error) {
  main.replaceChildren(h("h1", "Shiguan"), failed(error));
}
