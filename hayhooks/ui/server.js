// What the server says in English sentences, on the Chinese page in Chinese; what is not known here stays as it is.

import { language } from "./words.js";

const SENTENCES = [
  // why a sentence has its verdict
  [/^a passage says so word for word$/u, "原文逐字如此"],
  [/^a passage says so word for word; another source has (.+) in the place of (.+): \[(\d+)\]$/u, "原文逐字如此；另一种资料第$3段作$1，不作$2"],
  [/^a passage says so word for word; another source has (.+) in the place of (.+)$/u, "原文逐字如此；另一种资料作$1，不作$2"],
  [/^a passage says so in nearly the same words$/u, "原文大致逐字如此"],
  [/^a passage says so in nearly the same words; another source has (.+) in the place of (.+): \[(\d+)\]$/u, "原文大致逐字如此；另一种资料第$3段作$1，不作$2"],
  [/^a passage says so in nearly the same words; another source has (.+) in the place of (.+)$/u, "原文大致逐字如此；另一种资料作$1，不作$2"],
  [/^the same words, not checked further$/u, "字词相同，未再核实"],
  [/^a passage has these words, but may not state them$/u, "原文有这些字词，但未必是它的断言"],
  [/^a passage speaks of this in other words, not checked further$/u, "原文用别的话说到此事，未再核实"],
  [/^only one of the two denies it$/u, "一肯定，一否定"],
  [/^no passage says it by itself$/u, "没有一段独自说了这句话"],
  [/^the passages have (.+) only in another context$/u, "原文的$1说的是别的事"],
  [/^only a part of it is there: (.+)$/u, "只有一部分有据；其余：$1"],
  [/^it makes no claim$/u, "这句话没有陈述什么"],
  [/^the passages say so$/u, "原文如此"],
  [/^the passages say only a part of it$/u, "原文只说了一部分"],
  [/^the passages do not say so$/u, "原文没有这样说"],
  [/^there is no passage to compare with$/u, "没有可比较的原文"],
  [/^there is no such source$/u, "没有这一段"],
  [/^no passage has (.+)$/u, "原文都没有：$1"],
  [/^the passage has (.+) where the claim has (.+)$/u, "原文作$1，此句作$2"],
  [/^the passage has (.+)$/u, "原文作$1"],
  [/^another number: (.+)$/u, "数目不同：$1"],
  [/^the passages are in another language, so only its numbers could be compared$/u, "原文是另一种语言，只比较了数字"],
  [/^the passages are in another language; its numbers or names are there$/u, "原文是另一种语言；其中有同样的数字或名称"],
  [/^the passages are in another language; the nearest one .+$/u, "原文是另一种语言，按意义比较"],
  [/^it cites none of the passages, which are in another language$/u, "没有引用原文，而原文是另一种语言"],
  [/^only a tool says so, and the library, which goes before it, may say otherwise in \[(\d+)\]$/u, "只有工具这样说，书库第$1段或有不同"],
  // warnings
  [/^(\d[\d,]*) of the answer's (\d[\d,]*) sentences are not supported by the sources\.$/u, "答案共$2句，其中$1句无据。"],
  [/^The answer was cut off at the model's length limit[.;].*$/u, "答案超过模型的长度上限而被截断，未写完的末句已略去；请问得更窄一些。"],
  [/^The answer was withheld after .+$/u, "几次草稿都站不住，故不作答。"],
  [/^.+ removed from the answer: the sources do not support them\.$/u, "有的句子没有依据，已删去。"],
  [/^.+ marked ⚠: the sources do not support them\.$/u, "有的句子没有依据，已标出。"],
  [/^Nothing was searched: .+$/u, "没有可检索的：书库是空的，或所限范围内没有原文。"],
  [/^Searched by words alone, not by meaning\..*$/u, "只按字词检索，没有按意义检索。"],
  [/^(\d[\d,]*) of ([\d,]+) retrieval units have no vector yet .*$/u, "$2个检索单位中有$1个还没有向量，只能按字词检得；服务空闲时会补上。"],
  [/^The LLM sent no usable queries: .+$/u, "模型没有给出可用的改写，按原问检索。"],
  [/^No hypothetical passage \(.+$/u, "没有拟写段落，按原问检索。"],
  [/^The mode `(.+)` does not take `(.+)`: it was ignored\.$/u, "方式“$1”不接受“$2”，已略过。"],
  [/^The conversation could not be read\..*$/u, "此前的谈话读不出来。"],
  [/^Passages are in the order of the fusion: .+$/u, "没有重排模型，段落按合并次序排列。"],
  // what the server refuses
  [/^There is no source `(.+)` in this library\. Did you mean `(.+)`\? .*$/u, "书库中没有“$1”。是否指“$2”？"],
  [/^There is no source `(.+)` in this library\. .*$/u, "书库中没有“$1”。"],
  [/^There is no section `(.+)` in the sources that are asked\..*$/u, "所查的书中没有“$1”一节。"],
  [/^There is no such receipt\..*$/u, "没有这张凭据。"],
  [/^There is no such conversation\..*$/u, "没有这段谈话。"],
  [/^The question has ([\d,]+) characters, the limit is ([\d,]+).*$/u, "问题有$1个字，至多$2个字。"],
  [/^The question is empty.*$/u, "问题是空的。"],
  [/^The question `(.+)` has no words\..*$/u, "“$1”里没有字词，请用一句话来问。"],
  // times
  [/^(?:(\d+) ([A-Z][a-z]+) )?(\d+)(?:–(\d+))?( BC)?$/u, (_, day, month, year, last, before) => `${before ? "公元前" : ""}${year}${last ? `–${last}` : ""}年${day ? `${1 + new Date(`1 ${month} 2000`).getMonth()}月${day}日` : ""}`],
  // where a passage was lost
  [/^It is among the passages that are read\.$/u, "它在读到的段落之中。"],
  [/^The answer cites it\.$/u, "答案引用了它。"],
];

/** Say what the server said in the language of the page. */
export function said(text) {
  if (!text || language() !== "zh") return text ?? "";
  const parts = String(text).split(/(?<=[^\s\]]); (?=\[)/u); // reasons of several marks
  return parts.map((part) => {
    const [, mark, own] = /^(\[\d+\]: )?(.*)$/su.exec(part);
    const known = SENTENCES.find(([pattern]) => pattern.test(own));
    return (mark ?? "") + (known ? own.replace(known[0], known[1]) : own);
  }).join("；");
}
