import type { RuleDocument } from 'diana-limiter'
import { createReplayLimiter, type Extensions, type ReplayLimiter } from 'diana-limiter/gateway'
import type { FormatChoice } from './formats/choose.ts'
import type { LineReader, LogEntry } from './formats/format.ts'
import { BoundedJudge, uncertaintyOf } from './judging/bounded-judge.ts'
import { EntryCalls } from './judging/entry-call.ts'
import { ExactJudge } from './judging/exact-judge.ts'
import type { Judge } from './judging/judge.ts'
import { findUnjudged, type Unjudged } from './judging/needs.ts'
import { VirtualTime } from './judging/virtual-time.ts'
import { InOrder } from './reading/in-order.ts'
import { LogError, type LogSource } from './reading/log-chunks.ts'
import { type LogStatus, readLog } from './reading/log-reader.ts'
import { mergeLogs } from './reading/merge.ts'

export interface ReplayInput extends FormatChoice {
  /** Rule documents that judge the same calls. */
  readonly documents: readonly RuleDocument[]
  readonly logs: readonly LogSource[]
  readonly extensions?: Partial<Extensions> | undefined
  /** The dimension that the user of the log is, such as `account`. */
  readonly userAs?: string | undefined
  /** Microseconds since 1970: only calls in between are judged. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** The most callers of one rule that are counted. */
  readonly maxKeys?: number | undefined
  /** Called from time to time with the number of lines. */
  readonly onProgress?: ((lines: number) => void) | undefined
  /** Called with what became of each call, if its moment is known exactly. */
  readonly onVerdict?: ConstructorParameters<typeof ExactJudge>[2]['onVerdict']
}

/** The results of one document. */
export interface Judged {
  readonly document: RuleDocument
  readonly judge: Judge
  readonly unjudged: readonly Unjudged[]
}

export interface Replayed {
  readonly logs: readonly LogStatus[]
  readonly judged: readonly Judged[]
  /** The fields that the lines of all logs have. */
  readonly fields: ReadonlySet<string>
  /** The precision of the moments of calls, in microseconds; 1 means exactly. */
  readonly tickUs: number
  readonly isEndTime: boolean
  /** Requests that the gateway answers before any rule is asked. */
  readonly unroutable: number
  readonly late: number
  readonly latestUs: number
  readonly from: number
  readonly to: number
}

const MAX_KEYS = 100_000
/** More late lines, and a larger share of them, are not a few that a server wrote late. */
const MOST_LATE = 100
const MOST_LATE_SHARE = 0.01

interface Lane extends Judged {
  readonly calls: EntryCalls
  readonly replay: ReplayLimiter
}

/** Judges the calls of logs by rules. Throws a LogError or a FormatError if nothing can be read. */
export async function replay(input: ReplayInput): Promise<Replayed> {
  const statuses = input.logs.map((source): LogStatus => {
    return { name: source.name, reader: undefined, lines: 0, bad: 0, badLines: [], fault: undefined }
  })
  const run = new Run(input, statuses)
  try {
    const isWanted = wantedBy(input)
    const logs = input.logs.map((source, index) => readLog(source, { ...input, isWanted }, statuses[index]!))
    for await (const batch of mergeLogs(logs)) await run.take(batch)
    return await run.finish()
  } finally {
    for (const source of input.logs) source.close()
    await run.close()
  }
}

class Run {
  readonly #input: ReplayInput
  readonly #statuses: readonly LogStatus[]
  readonly #order = new InOrder()
  readonly #fields = new Set<string>()
  #lanes: Lane[] | undefined
  #tickUs = 1
  #isEndTime = false
  #hasDurations = false
  #unroutable = 0
  #from = Number.POSITIVE_INFINITY
  #to = Number.NEGATIVE_INFINITY

  constructor(input: ReplayInput, statuses: readonly LogStatus[]) {
    this.#input = input
    this.#statuses = statuses
  }

  async take(batch: readonly LogEntry[]): Promise<void> {
    this.#lanes ??= await this.#open()
    const { since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY } = this.#input
    const [tickUs, shifts] = [this.#tickUs, this.#isEndTime && this.#hasDurations]
    for (const entry of batch) {
      if (entry.at < since || entry.at >= until) continue
      if (shifts && entry.durationUs > 0) entry.at -= entry.durationUs
      if (tickUs > 1) entry.at = Math.floor(entry.at / tickUs) * tickUs
      if (this.#order.add(entry)) await this.#judge(this.#order.take(false))
    }
    this.#input.onProgress?.(this.#lines())
  }

  async finish(): Promise<Replayed> {
    this.#lanes ??= await this.#open()
    await this.#judge(this.#order.take(true))
    for (const { judge } of this.#lanes) await judge.finish()
    this.#input.onProgress?.(this.#lines())
    return {
      logs: this.#statuses,
      judged: this.#lanes,
      fields: this.#fields,
      tickUs: this.#tickUs,
      isEndTime: this.#isEndTime,
      unroutable: this.#unroutable,
      late: this.#order.late,
      latestUs: this.#order.latestUs,
      from: this.#from,
      to: this.#to,
    }
  }

  async close(): Promise<void> {
    for (const { replay } of this.#lanes ?? []) await replay.limiter.close()
  }

  async #judge(entries: readonly LogEntry[]): Promise<void> {
    if (entries.length === 0) return
    this.#assertOrder()
    if (entries[0]!.at < this.#from) this.#from = entries[0]!.at
    this.#to = entries.at(-1)!.at
    for (const lane of this.#lanes!) {
      const { calls, judge } = lane
      for (const entry of entries) {
        const call = calls.callOf(entry)
        if (call === undefined) {
          if (lane === this.#lanes![0]) this.#unroutable++
          continue
        }
        const later = judge.add(call, entry)
        if (later !== undefined) await later
      }
    }
  }

  /** Throws if the moments of calls are lost: a few lines may be late, but not a log that is sorted otherwise. */
  #assertOrder(): void {
    const { late, taken } = this.#order
    if (late < MOST_LATE || late < taken * MOST_LATE_SHARE) return
    const names = this.#statuses.map(({ name }) => name).join(', ')
    throw new LogError(
      `${names} ${this.#statuses.length === 1 ? 'is' : 'are'} not in the order of time: ${late} of ${taken} lines are older than earlier ones by more than a minute; ` +
        'if the newest line is first, turn it around: tac access.log | diana replay rules.yaml -; otherwise sort it by time',
    )
  }

  /** Formats are known once each log has given its first lines. */
  async #open(): Promise<Lane[]> {
    const readers = this.#statuses.flatMap(({ reader }) => reader ?? [])
    for (const name of readers[0]?.fields ?? [])
      if (readers.every(({ fields }) => fields.has(name))) this.#fields.add(name)
    const { userAs } = this.#input
    if (userAs !== undefined && this.#fields.has('user')) this.#fields.add(`attribute:${userAs}`)
    this.#tickUs = Math.max(1, ...readers.map(({ tickUs }) => tickUs))
    this.#isEndTime = readers.some(({ time }) => time === 'end')
    this.#hasDurations = this.#fields.has('duration')
    const lanes: Lane[] = []
    for (const document of this.#input.documents) lanes.push(await this.#openLane(document, readers))
    return lanes
  }

  async #openLane(document: RuleDocument, readers: readonly LineReader[]): Promise<Lane> {
    const { extensions, maxKeys = MAX_KEYS, onVerdict, userAs } = this.#input
    const unjudged = findUnjudged(document, this.#fields)
    const isJudged = (id: string): boolean => unjudged.every(one => one.id !== id)
    const judgeable = { ...document, rules: document.rules.filter(({ id }) => isJudged(id)) }
    const time = new VirtualTime()
    const limiter = await createReplayLimiter(judgeable, {
      ...{ extensions, clock: () => time.now / 1000, timers: time },
      maxKeys: Math.max(10_000, maxKeys * judgeable.rules.length),
    })
    const isAligned = !(this.#isEndTime && this.#hasDurations)
    const judge =
      this.#tickUs === 1 && (isAligned || this.#hasDurations)
        ? new ExactJudge(limiter, time, { maxKeys, onVerdict })
        : new BoundedJudge(limiter, uncertaintyOf(limiter.rules, this.#tickUs, isAligned), { maxKeys })
    // the gateway logs the address that it has chosen among proxies
    const isCaller = readers.every(({ format }) => format.startsWith('diana'))
    const calls = new EntryCalls(limiter, { forwardedBy: document.forwardedBy, isCaller, userAs })
    return { document, judge, unjudged, calls, replay: limiter }
  }

  #lines(): number {
    return this.#statuses.reduce((sum, { lines }) => sum + lines, 0)
  }
}

/** Returns which headers of a log the rules may ask for: those that they name. */
function wantedBy({ documents, userAs }: ReplayInput): (name: string) => boolean {
  const text = JSON.stringify(documents).toLowerCase()
  return name => {
    if (name === 'user') return userAs !== undefined
    const word = name.slice(name.indexOf(':') + 1)
    return (
      text.includes(word) ||
      (word === 'authorization' && text.includes('jwt')) ||
      (word === 'cookie' && text.includes('cookie'))
    )
  }
}
