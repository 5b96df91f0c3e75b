// Much of what is searched for is a message of the program, pasted. The theme looks for any of its words, as beginnings of
// others, and takes `--flag` for a word that must not be found. So for a query of several words, pages that have all of its
// words are looked for; then those that have all but the last, and so on: a message ends with what differs each time. A
// query in quotation marks is left to the theme.
const QUERY = 2, RESULT = 3; // the theme's numbers of messages
const MOST = 8; // words
const NOT_INDEXED =
  /^(about|across|after|almost|also|among|because|been|cannot|could|dear|does|either|else|ever|every|from|have|hers|however|into|just|least|like|likely|might|most|must|neither|often|only|other|rather|said|says|should|since|some|than|that|their|them|then|there|these|they|this|twas|wants|were|what|when|where|which|while|whom|will|with|would|your)$/i;

const waysToAsk = (query) => {
  const line = query.trim().split("\n")[0].replace(/^(wave|wave guard|Error): /, "");
  const words = line.split(/[\s"'`:;,=()[\]{}|<>~^*+…]+/).map((word) => word.replace(/^[-.]+|[.?!]+$/g, "")).filter(Boolean);
  if (words.length < 4) return [words.join(" ")];
  const told = words
    .filter((word) => /^[a-z][a-z_-]*$/i.test(word)) // no path, no number
    .flatMap((word) => word.split("-"))
    .filter((word) => word.length > 3 && !NOT_INDEXED.test(word))
    .slice(0, MOST);
  const ways = told.map((_, at) => told.slice(0, told.length - at)).filter((some) => some.length > 1);
  return [...ways.map((some) => some.map((word) => `+${word}*`).join(" ")), words.map((word) => `${word}^1`).join(" ")];
};

window.Worker = class extends window.Worker {
  constructor(...given) {
    super(...given);
    this.ways = [];
    this.addEventListener("message", (event) => {
      if (event.data.type !== RESULT || !this.ways.length || event.data.data.items.length) return;
      event.stopImmediatePropagation();
      this.ask();
    });
  }

  postMessage(message, ...more) {
    if (message?.type !== QUERY || typeof message.data !== "string" || /^\s*".*"\s*$/.test(message.data)) super.postMessage(message, ...more);
    else this.ask(waysToAsk(message.data));
  }

  ask(ways = this.ways) {
    const [first, ...others] = ways;
    this.ways = others;
    super.postMessage({ type: QUERY, data: first });
  }
};
