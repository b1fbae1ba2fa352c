// Syntax up to ES2022, no name that nobody declares or uses, and no interface that a browser of package.json lacks.
import { readFileSync } from "node:fs";
import compat from "eslint-plugin-compat";
import globals from "globals";

const { browserslist } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf-8"));

export default [
  {
    plugins: { compat },
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    settings: { browsers: browserslist, lintAllEsApis: true },
    rules: { "compat/compat": "error", "no-undef": "error", "no-unused-vars": "error" },
  },
];
