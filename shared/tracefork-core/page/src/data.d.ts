// The data of a report: what Python writes into the page (tracefork_core/report), and what the page
// reads. One JSON document names everything that is small. What grows with the run lies in packed
// parts: deflate-raw, base64, each in a <script type="application/octet-stream"> of its own.

/** The document in <script type="application/json" id="report">. */
export interface Report {
  format: 1;
  /** The version of tracefork that wrote it. */
  tracefork: string;
  /** False with --no-content: no text of the run is in the page, only its structure. */
  content: boolean;
  /** The run of the report first, its branches and the other tapes of a folder behind it. */
  runs: Run[];
  /** Where it opens if its address names no place: "run=1&step=4&part=diff"; may be empty. */
  place: string;
  /** What the page says about the whole: a folder's name, or the tape's. */
  title: string;
}

export interface Run {
  /** "refund.tape"; commands name it so. */
  name: string;
  digest: string;
  /** How many exchanges the run has, those that a branch shares with its parent included. */
  exchanges: number;
  /** Exchanges before `at` are those of the parent: the run with that index. */
  parent: { run: number; at: number } | null;
  /** The one exchange that the page holds of it; null if it holds all. */
  only: number | null;
  /** The agent's command as it was typed; null if unknown. */
  command: string | null;
  /** When it began, in milliseconds since the epoch. */
  started: number;
  /** How long it took, in milliseconds. */
  took: number;
  outcome: { ok: boolean | null; words: string };
  finding: Finding;
  totals: Totals;
  /** Facts of the recording as [name, value]: Python, platform, commit, packages. */
  facts: [string, string][];
  /** What was captured, what was masked, what tracefork cannot see of this run: sentences. */
  coverage: string[];
  masked: string[];
  limits: string[];
  lanes: string[];
  blame: Blame | null;
  /** How this run compares with its parent, or with the run beside it; null for other runs. */
  branch: Branch | null;
  checkpoints: Checkpoint[];
  /** The id of the packed part that holds its Index. */
  index: string;
  /** The packed parts that hold its Blocks: the first exchange of each, and the id. */
  blocks: [number, string][];
}

/** The first lines of the page. `sure` is "proven", "likely" or "not enough evidence". */
export interface Finding {
  /** "exchange 10: search_flights(date='2026-05-03')", or why no step is named. */
  line: string;
  /** The sentences behind it. */
  more: string;
  sure: string;
  /** The exchanges that it names. */
  exchanges: number[];
  /** What to type next. */
  next: string;
}

/** Null where it is unknown. Costs are US dollars as text ("$0.0143"). */
export interface Totals {
  model_calls: number;
  tool_calls: number;
  http: number;
  models: string[];
  tokens_in: number | null;
  tokens_out: number | null;
  cost: string | null;
  bytes: number;
}

export interface Blame {
  sentence: string;
  /** "single", "joint", "diffuse", "undecided", … */
  verdict: string;
  /** Sorted, the likeliest first. Rates and effects are shares from -1 to 1. */
  ranking: Part[];
  /** The share of runs that fail if the run is kept up to a position and decided again after it. */
  curve: { position: number; rate: number; low: number; high: number; draws: number }[];
  /** The controls in words. */
  controls: string[];
  /** What it cost, in words, and the command that repeats or resumes it. */
  spent: string;
  command: string;
}

export interface Part {
  exchange: number;
  words: string;
  /** Null if it was not measured. */
  effect: number | null;
  low: number | null;
  high: number | null;
  probability: number | null;
  draws: number;
  /** "named", "likely", "passed it on" or "". */
  verdict: string;
}

export interface Branch {
  at: number;
  /** "fork refund.tape --at 3 --edit …": what was changed, in words. */
  words: string;
  /**
   * One per exchange: what it was in a branch (DIVERGED is the first whose request differs), or
   * how it compares with another run.
   */
  cells: ("FREE" | "LIVE" | "EDITED" | "DIVERGED" | "SAME" | "DIFFERS")[];
  /** The differences from the other run, the first divergence first. */
  findings: Difference[];
}

export interface Difference {
  kind: string;
  /** The exchange on each side; null if it is only on the other. */
  before: number | null;
  after: number | null;
  words: string;
  /** The texts that differ: where, and what. */
  changes: { where: string; before: string | null; after: string | null }[];
}

export interface Checkpoint {
  /** The exchange that it lies before. */
  exchange: number;
  words: string;
  /** What resumes from it. */
  command: string;
}

/** The rows of the timeline in columns: entry i is exchange i (minus `parent.at` for a branch). */
export interface Index {
  kind: ("model" | "tool" | "http")[];
  /** A model, a tool, or "GET example.org/orders". */
  label: string[];
  /** The first words of what came of it; empty without content. */
  gist: string[];
  /** The index of its lane and of its step (-1 for none). */
  lane: number[];
  step: number[];
  /** Milliseconds from the start of the run, and how long it took (-1 if unknown). */
  started: number[];
  took: number[];
  /** -1 where unknown; costs in millionths of a US dollar. */
  tokens_in: number[];
  tokens_out: number[];
  cost: number[];
  /** The number of the first message that is new at this exchange. */
  message: number[];
  /** Sparse: by exchange. An error in words; what else is worth a mark ("auxiliary", "given"). */
  errors: Record<string, string>;
  marks: Record<string, string[]>;
  steps: Step[];
  /**
   * Which exchange needed which, besides the order within a lane. A recorded edge is solid; one that
   * was inferred names its rule.
   */
  edges: { from: number; to: number; rule: string | null }[];
}

export interface Step {
  /** "task", "agent", "node", "tool", … */
  kind: string;
  name: string;
  /** The index of its parent; -1 for none. */
  parent: number;
  started: number;
  /** -1 if it did not end. */
  took: number;
  error: string | null;
}

/** Consecutive exchanges with their content, small enough to unpack at once. */
export interface Block {
  /** The number of the first message that is new in this block. Numbers go on through `new`. */
  message: number;
  exchanges: Exchange[];
}

/** A message that was seen first at this exchange. */
export interface Message {
  /** "system", "user", "assistant", "tool", or the name of the speaker. */
  who: string;
  /** The question it belongs to, or the answer. */
  side: "in" | "out";
  parts: MessagePart[];
}

export interface MessagePart {
  /** "text", "reasoning", "tool_call", "tool_result", or another, shown as it is. */
  type: string;
  /** Text; arguments and results as JSON text if they are no text. */
  text: string;
  /** The tool, and the id that joins a call with its result. */
  name?: string;
  id?: string;
}

export interface Exchange {
  /**
   * The messages of the question: the first `keep` of exchange `base` (-1: none), and these. In the
   * file, numbers of messages here and in `answer` count from the first message that is new here.
   */
  base: number;
  keep: number;
  messages: number[];
  /** The messages of the answer. */
  answer: number[];
  /** Model settings and tools offered, if they differ from those of `base`; null if they do not. */
  settings: string | null;
  /** The messages that were seen first here, numbered from `Index.message[i]` on. */
  new: Message[];
  method: string;
  url: string;
  /** Null if no response came. */
  status: number | null;
  request_headers: [string, string][];
  response_headers: [string, string][];
  request: Body;
  response: Body;
  /** Where the agent sent it: "agent.py:41 in ask". */
  caller: string | null;
}

/**
 * A body: the first `head` characters of the request of exchange `base`, `text`, and its last `tail`
 * characters. `base` is -1 for a body of its own. `binary` is its size in bytes if it is no text; its
 * text is empty then.
 */
export interface Body {
  base: number;
  head: number;
  text: string;
  tail: number;
  binary: number | null;
}

/** What `tracefork view` tells of a run as it grows: an event "growth" of /api/run. */
export interface Growth {
  /** Changes when the tape is recorded again: nothing of before stays then. */
  recording: number;
  /** The rows before it stay. The columns of `index` begin there. */
  from: number;
  run: Run | null;
  /** Its `steps` are empty, and its `edges` lead to rows from `from` on. */
  index: Index | null;
  /** The steps that are new or have changed, by their numbers. */
  steps: [number, Step][];
  /** Whether the recording has not been closed. */
  open: boolean;
  /** How many exchanges have no end yet, and how many are on the tape and not told yet. */
  in_flight: number;
  left: number;
  /** Milliseconds since anything was written. */
  quiet: number;
  problem: string | null;
}

/** A tape of the list: an event "entries" of /api/folder has those that are new or have changed. */
export interface Entry {
  name: string;
  bytes: number;
  /** When it was last written, and when the run began, in milliseconds since the epoch. */
  modified: number;
  started: number | null;
  took: number | null;
  /** "" (not read yet), "complete", "open", "sealed", "damaged" or "threads". */
  state: string;
  exchanges: number | null;
  /** "ok", or the error; null while it is open. */
  outcome: string | null;
  /** The tapes that a branch needs, its parent first, and where it leaves it. */
  needs: string[];
  at: number | null;
  words: string | null;
  problem: string | null;
}
