// What the page says, in English and Chinese.

import { kept } from "./dom.js";

const EN = {
  skip: "Skip to the text", ask: "Ask", library: "Library", past: "History", language: "中文", theme: "Light or dark",
  key: "Key",
  askHead: "What do the sources say?",
  askLead: "Every sentence of an answer comes with its passage and a verdict. If the books do not say it, Shiguan does not answer.",
  emptyHead: "Your library is empty", emptyLead: "Add a book. You can ask about it within seconds.",
  toLibrary: "Add a book", question: "Your question", followUp: "A follow-up question", send: "Ask", stopAsking: "Stop", mode: "Mode", comma: ", ", count: "{0} {1}",
  newTalk: "New conversation", only: "Only in", everywhere: "Search everywhere", sentence: "Sentence {0}",
  promise: { simple: "one model call, or none", advanced: "up to 6 calls; compares several passages", precise: "up to 6 calls; shows only what is supported", agent: "several calls; searches in steps" },
  stage: { query_rewritten: "Searching", documents_retrieved: "{0} passages read", generation_start: "Writing" },
  verdict: { supported: "supported", partial: "partly supported", unsupported: "not supported", contradicted: "contradicted", quoted: "quoted", closest: "closest" },
  status: {
    not_found: "Not found", refused: "Refused", recalled: "From the conversation", unsearched: "Answered without a search", quoted: "Closest passages, word for word",
    closest: "No passage clearly answers this; these come closest.",
  },
  cause: {
    noModel: "No language model is set up, so you see the passages themselves. Judge for yourself whether they answer the question.",
    unreached: "The language model could not be reached, so you see the passages themselves. Judge for yourself whether they answer the question.",
    refusedKey: "The language model refused its API key, so you see the passages themselves. Judge for yourself whether they answer the question.",
    noCredit: "The account of the language model has no credit left, so you see the passages themselves. Judge for yourself whether they answer the question.",
    budget: "The question’s budget was spent before a language model could answer, so you see the passages themselves. Judge for yourself whether they answer the question.",
  },
  absent: "{0} does not occur in your library.", near: " Similar names that do: ", stillReading: "Your library is still being indexed: {0} passages cannot be searched by meaning yet.", howFar: "Show progress",
  emptyAsked: "There are no books to answer from yet.", sources: "Sources", passagesRead: "Passages read: {0}", page: "p. {0}", table: "Table",
  modes: { simple: "Simple", advanced: "Advanced", precise: "Precise", agent: "Agent" },
  allChecked: "Every sentence checked.", summary: "Sentences checked: {0}. {1}.", done: "The answer is complete.",
  removedSentences: "Removed from the answer ({0})", rejected: "Rejected drafts ({0})", wholePassage: "Whole passage",
  yourLibrary: "In your library", more: "and {0} more", alike: "No language model is set up: every mode quotes the same passages.",
  beside: "The passage", besideEmpty: "Choose a sentence to see its passage here, with the words marked.",
  noPassage: "No passage supports this sentence.", openBook: "Open the book here", why: "Why", closePane: "Close",
  gone: "This passage is no longer in the library. It was quoted as:", passageOf: "Passage {0}",
  whyHead: "How this answer was made", times: "Times", total: "total", tokens: "Tokens", calls: "Model calls", firstWord: "Time to first word", model: "Model",
  judge: "Rate this answer", right: "Helpful", wrong: "Something is wrong", kindOf: "What is wrong?", note: "In your own words", tell: "Send",
  kind: { wrong: "The answer is false", wrong_citation: "A passage does not say this", missing: "Something is missing" }, thanks: "Thank you. Noted: “{0}”.",
  receipt: "Receipt", warnings: "Warnings", seconds: "{0} s", ms: "{0} ms", stale: "A source cited here has since been replaced or deleted.",
  lostHead: "Missing a passage?", lostLead: "Words of a passage that you expected to see:", look: "Find out",
  steps: { bm25: "found by words", vectors: "found by meaning", fused: "after the fusion", fetched: "passages fetched", ranked: "passages chosen", context: "read" },
  rank: "number {0} of {1}", notAmong: "not among {0}", notLost: "It was not lost.", lost: "It was lost here.",
  lostAt: {
    never_ingested: "No passage in the library contains these words.", split_across_children: "The words are spread over several pieces of a passage, and none of them was found.",
    not_found_by_bm25: "The search by words did not find it.", not_found_by_vectors: "The search by meaning did not find it.", not_found_by_either: "Neither the search by words nor the search by meaning found it.",
    fused_out: "The search found it, but better hits took its place.", parent_not_fetched: "It was found, but the stored passage could not be read.",
    ranked_out: "It was found, but other passages were preferred.", cut_by_budget: "It did not fit into the text that the model reads.",
    refused: "It was read, but the answer is that the sources do not say this.", not_used: "It was read, but nothing in the answer comes from it.", not_cited: "The answer says the same but cites another passage.",
  },
  stages: {
    conversation: "Conversation", tenant_filter: "Library access", query_analyzer: "Question analysis", query_rewriter: "Rewording", hyde_embedder: "Imagined passage", text_embedder: "Meaning of the question",
    bm25_retriever: "Search by words", embedding_retriever: "Search by meaning", retriever: "Search", joiner: "Fusion", language_balancer: "Language balance", parent_fetcher: "Reading the passages", ranker: "Ranking",
    relevance: "Relevance", sub_questions: "Sub-questions", goal_restater: "Goal", context_builder: "Choosing passages", gate: "Answerability", prompt_builder: "Prompt", generator: "Model",
    hallucination_grader: "Checking the draft", citation_extractor: "Checking and citing", attempt: "Attempt", memory_router: "Question or conversation", memory_retriever: "Conversation lookup",
  },
  take: "Export", copyMd: "Copy as Markdown", saveMd: "Markdown", saveDocx: "Word", saveBib: "BibTeX", saveRis: "RIS", saveCsl: "CSL JSON", saveAnno: "EPUB annotations",
  copyLink: "Copy link", print: "Print", copied: "Copied.",
  search: "Search the passages", searchGo: "Search", years: "Years, such as 755..763 or 天宝十四载", byYear: "By year", filter: "Filter the list", found: "Passages found: {0}", nothing: "Nothing found.",
  drop: "Drop books here, or", choose: "choose files", formats: "EPUB, PDF, DOCX, HTML, Markdown, text, JSONL; up to {0} MB each",
  sending: "Uploading", waiting: "Waiting", ingesting: "Reading", words: "Words", vectors: "Meaning", of: "{0} of {1}",
  ingested: "{0} passages, {1} new, {2} vectors", skipped: "Skipped", failed: "Failed", superseded: "Replaced by a newer upload", cancelled: "Cancelled",
  works: "Sources: {0}", passages: "Passages: {0}", complete: "complete", incomplete: "still being indexed", remove: "Delete", removed: "“{0}” was deleted.", undo: "Undo",
  read: "Read", onlyThis: "Ask only this", showAll: "Show all {0}", contents: "Contents", back: "Back to the answer", earlier: "Previous", further: "Next",
  onlyChapter: "Ask only this chapter", notes: "Notes", untitled: "No heading", pastHead: "Earlier questions", pastEmpty: "You have not asked anything yet.",
  check: "Check", checkHead: "Check a text", checkGo: "Check", checkText: "Paste a text, or drop a file here", checkFile: "Choose a file", checkedParts: "Parts checked: {0}", showOnly: "Show only", checkMore: "and in {0} more places",
  checkLead: "Every quotation is looked up word for word, and every other sentence is checked like a sentence of an answer.",
  checks: { found: "word for word", altered: "altered", stitched: "pieced together from several places", misattributed: "found elsewhere", absent: "not in the library", too_short: "too short to look up", nothing: "nothing to check", supported: "supported", partial: "partly supported", unsupported: "not supported", contradicted: "contradicted" },
  turns: "Questions: {0}", rename: "Rename", export: "Export", open: "Open", title: "Title", save: "Save",
  keyHead: "Enter your key", keyLead: "This library needs a key. It is kept for this tab only.", keyWrong: "That key is not valid, has expired or was revoked. Enter another one.",
  keyMake: "Whoever runs the server can make one with", enter: "Continue", leave: "Forget the key",
  error: {
    offline: "The server is not responding. Is it running?", broken: "The connection was lost before the answer was complete. What arrived is shown above.", too_many_requests: "Too many questions at once.", stopped: "Stopped.",
    upstream_unavailable: "The language model could not be reached. Try again in a few seconds.", answer_failed: "The answer could not be completed. Try again.", timeout: "The answer took too long. Ask a smaller question, or try again.",
  },
  tooLong: "The question has {0} characters, the limit is {1}.",
  again: "Try again", waitFor: "Try again in {0} s.", reference: "Request number in the server's log: {0}", themeNames: { "": "same as system", light: "light", dark: "dark" },
};

const ZH = {
  skip: "跳到正文", ask: "提问", library: "书库", past: "历史", language: "English", theme: "明暗", key: "密钥",
  askHead: "史料怎么说？",
  askLead: "答案的每一句都附有所依据的原文，并注明是否成立。书中没有的，不作回答。",
  emptyHead: "书库还是空的", emptyLead: "添加一本书，几秒钟后便可提问。", toLibrary: "添加书籍",
  question: "你的问题", followUp: "接着问", send: "提问", stopAsking: "停止", mode: "方式", comma: "，", count: "{1}{0}句", newTalk: "新对话", only: "只查", everywhere: "查全部", sentence: "第{0}句",
  promise: { simple: "调用模型至多一次", advanced: "至多六次；比较多段", precise: "至多六次；只留有据的", agent: "多次；逐步查找" },
  stage: { query_rewritten: "检索中", documents_retrieved: "读了{0}段", generation_start: "作答中" },
  verdict: { supported: "有据", partial: "部分有据", unsupported: "无据", contradicted: "与原文相反", quoted: "引文", closest: "相近" },
  status: { not_found: "没有找到", refused: "拒绝回答", recalled: "来自此前的对话", unsearched: "未检索即回答", quoted: "最接近的原文", closest: "没有哪一段明确回答这个问题，最接近的如下。" },
  cause: {
    noModel: "未配置语言模型，故只引原文，不另作陈述；是否回答了问题，请自行判断。",
    unreached: "语言模型没有响应，故只引原文，不另作陈述；是否回答了问题，请自行判断。",
    refusedKey: "语言模型不接受所设的 API 密钥，故只引原文，不另作陈述；是否回答了问题，请自行判断。",
    noCredit: "语言模型的账户余额不足，故只引原文，不另作陈述；是否回答了问题，请自行判断。",
    budget: "本题的预算已经用完，故只引原文，不另作陈述；是否回答了问题，请自行判断。",
  },
  absent: "你的书库中没有“{0}”。", near: "相近的有：", stillReading: "书库还在建立索引：尚有{0}段不能按意义检索。", howFar: "查看进度",
  emptyAsked: "还没有可据以回答的书。", sources: "出处", passagesRead: "读到的原文（{0}段）", page: "第{0}页", table: "表",
  modes: { simple: "简答", advanced: "详考", precise: "严核", agent: "探寻" },
  allChecked: "每一句都已核对。", summary: "共{0}句，逐句核对：{1}。", done: "回答完毕。", removedSentences: "已删去的句子（{0}）", rejected: "未通过的草稿（{0}）", wholePassage: "整段原文",
  yourLibrary: "书库中有", more: "另有{0}种", alike: "未配置语言模型：各种方式所引的原文相同。",
  beside: "原文", besideEmpty: "选一句，所据原文便在此展开，引处加亮。", noPassage: "此句没有所据的原文。", openBook: "翻到书中此处", why: "由来", closePane: "关闭",
  gone: "书库里已没有这一段。当时所引：", passageOf: "第{0}段", whyHead: "此答由来", times: "用时", total: "合计", tokens: "词元", calls: "调用模型", firstWord: "首字用时", model: "模型",
  judge: "此答对吗？", right: "对", wrong: "有误", kindOf: "哪里不对？", note: "用你的话说", tell: "提交",
  kind: { wrong: "所言不实", wrong_citation: "所引原文没有这样说", missing: "有遗漏" }, thanks: "谢谢，已记下：{0}。",
  receipt: "回执", warnings: "提示", seconds: "{0}秒", ms: "{0}毫秒", stale: "所引的书此后已被替换或删除。",
  lostHead: "漏在哪一步？", lostLead: "填入你认为应当用到的原文：", look: "追查",
  steps: { bm25: "按字词检得", vectors: "按意义检得", fused: "合并之后", fetched: "取回段落", ranked: "选用段落", context: "读到" },
  rank: "第{0}，共{1}", notAmong: "不在{0}条之中", notLost: "没有漏。", lost: "漏在这里。",
  lostAt: {
    never_ingested: "书库中没有这些字。", split_across_children: "这些字跨了几个小段，都没有检得。", not_found_by_bm25: "按字词没有检得。", not_found_by_vectors: "按意义没有检得。", not_found_by_either: "按字词、按意义都没有检得。",
    fused_out: "检得了，但合并时被更近的挤掉。", parent_not_fetched: "检得了，但原文读不出来。", ranked_out: "检得了，但选用了别的段落。", cut_by_budget: "放不进模型所读的篇幅。",
    refused: "读到了，而答案说书中没有。", not_used: "读到了，而答案没有用。", not_cited: "答案说法相同，却引了另一段。",
  },
  stages: {
    conversation: "对话", tenant_filter: "书库归属", query_analyzer: "分析问题", query_rewriter: "改写问题", hyde_embedder: "拟写段落", text_embedder: "问题向量", bm25_retriever: "按字词检索", embedding_retriever: "按意义检索", retriever: "检索",
    joiner: "合并", language_balancer: "语言权衡", parent_fetcher: "取原文", ranker: "重排", relevance: "判断相关", sub_questions: "分题", goal_restater: "重述目标", context_builder: "选定所读", gate: "能否回答", prompt_builder: "提示词",
    generator: "模型", hallucination_grader: "核对草稿", citation_extractor: "核对与引注", attempt: "次数", memory_router: "问书或问对话", memory_retriever: "查对话",
  },
  take: "导出", copyMd: "复制为 Markdown", saveMd: "Markdown", saveDocx: "Word", saveBib: "BibTeX", saveRis: "RIS", saveCsl: "CSL JSON", saveAnno: "EPUB 批注", copyLink: "复制链接", print: "打印", copied: "已复制。",
  search: "在原文中检索", searchGo: "检索", years: "年份（如 755..763、天宝十四载）", byYear: "按年列出", filter: "筛选书目", found: "{0}段", nothing: "没有找到。",
  drop: "把书拖到这里，或", choose: "选择文件", formats: "EPUB、PDF、DOCX、HTML、Markdown、文本、JSONL；每个不超过 {0} MB",
  sending: "上传", waiting: "排队", ingesting: "读入", words: "字词", vectors: "意义", of: "{0} / {1}", ingested: "{0}段，新增{1}段，向量{2}条", skipped: "略过", failed: "失败", superseded: "已被新上传取代", cancelled: "已取消",
  works: "{0}种书", passages: "{0}段", complete: "已完成", incomplete: "建立索引中", remove: "删除", removed: "已删《{0}》。", undo: "撤销", read: "阅读", onlyThis: "只问此书", showAll: "显示全部{0}种",
  contents: "目录", back: "回到答案", earlier: "上文", further: "下文", onlyChapter: "只问此章", notes: "注", untitled: "无题",
  pastHead: "历史提问", pastEmpty: "还没有提过问。", turns: "{0}个问题", rename: "改名", export: "导出", open: "打开", title: "标题", save: "保存",
  check: "核对", checkHead: "核对文字", checkGo: "核对", checkText: "贴入一段文字，或把文件拖到这里", checkFile: "选择文件", checkedParts: "已核对{0}处", showOnly: "只看", checkMore: "另见{0}处",
  checkLead: "引文逐字查对，其余句子照答案的句子核实。",
  checks: { found: "逐字相符", altered: "有改动", stitched: "数处拼合", misattributed: "出处不合", absent: "库中没有", too_short: "太短，无法查对", nothing: "无可核实", supported: "成立", partial: "部分成立", unsupported: "不成立", contradicted: "与原文相反" },
  keyHead: "请输入密钥", keyLead: "这个书库需要密钥。密钥只保存在这个标签页里。", keyWrong: "密钥无效、已过期或已吊销，请换一个。", keyMake: "由服务器管理员生成：", enter: "进入", leave: "清除密钥",
  error: {
    offline: "服务器没有响应，是否在运行？", broken: "回答未完，连接已断开；已收到的部分在上面。", too_many_requests: "同时的问题太多。", stopped: "已停。",
    upstream_unavailable: "语言模型没有响应，请稍后再试。", answer_failed: "回答失败，请重试。", timeout: "用时过长；请把问题问得小一些，或重试。", bad_request: "无法读懂请求。", refused: "无法这样提问：", invalid_request: "请求有误：",
    unauthenticated: "没有有效的密钥。", forbidden: "这个密钥无权这样做。", tenant_mismatch: "密钥不属于这个书库。", not_local: "没有设置密钥，只有本机可以提问。", not_found: "没有找到：", method_not_allowed: "请求方式不对。",
    head_too_large: "请求头太大。", payload_too_large: "内容太大，请分次发送。", internal: "服务器内部出错，请重试。", not_ready: "服务器还没有准备好，请稍候。", overloaded: "服务器太忙，请稍后再试。", shutting_down: "服务器正在关闭。",
    store_unavailable: "书库暂时不可用，请重试。", storage_full: "服务器磁盘已满。",
  },
  tooLong: "问题有{0}个字，至多{1}个字。",
  again: "重试", waitFor: "{0}秒后重试。", reference: "请求编号：{0}", themeNames: { "": "随系统", light: "明", dark: "暗" },
};

const formats = {};
const TONGUES = { en: EN, zh: ZH };
let tongue = kept("language", undefined, localStorage) ?? (navigator.language.startsWith("zh") ? "zh" : "en");
if (!(tongue in TONGUES)) tongue = "en";

/** The language of the page, `en` or `zh`. */
export const language = () => tongue;

/** Speak the other language. */
export function switchLanguage() {
  tongue = tongue === "en" ? "zh" : "en";
  kept("language", tongue, localStorage);
}

/** Say something: `t("rank", 2, 50)`, `t("verdict.supported")`. A name that no word is known for is said as it is. */
export const t = (name, ...given) => worded(tongue, name, given);

/** Say things in the language of an answer, where the page speaks it: what `t` would be, and its language. */
export function speaking(language) {
  const own = language in TONGUES ? language : tongue;
  return [(name, ...given) => worded(own, name, given), own];
}

function worded(own, name, given) {
  const found = name.split(".").reduce((words, key) => words?.[key], TONGUES[own]);
  if (typeof found !== "string") return name.split(".").pop();
  return found.replace(/\{(\d)\}/g, (_, number) => given[number] ?? "");
}

/** Say something around an element whose direction of writing must not spread to the rest of the sentence. */
export function around(name, element, say = t) {
  const [before, after] = say(name, "\0").split("\0");
  return [before, element, after];
}

/** Write a number the way the language does. */
export function number(value) {
  formats[tongue] ??= new Intl.NumberFormat(tongue); // to make one takes longer than a frame
  return formats[tongue].format(value ?? 0);
}
