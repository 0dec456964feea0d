import { hostname } from 'node:os'
import { reportFault } from '../../common/faults.ts'
import { evaluate, scriptOf } from '../../stores/redis/script/evaluate-script.ts'
import { addHistory } from '../../stores/redis/script/generated.ts'
import type { SendCommand } from '../../stores/redis/send-command.ts'
import type { Stats } from '../stats.ts'
import { CountDeltas, historyNames, type SecondCounts } from './count-deltas.ts'
import {
  fieldOfProcess,
  fieldOfRule,
  keyOfStep,
  mostFields,
  mostReportedRules,
  parseTime,
  readRedisTime,
} from './fleet-steps.ts'
import { historyLevels } from './history-levels.ts'
import { allCalls } from './read-range.ts'

export interface FleetReporterOptions {
  readonly send: SendCommand
  readonly prefix: string
  readonly stats: () => Stats
  /** Names this process among those of the fleet. */
  readonly process?: string | undefined
}

type Sums = Map<string, Record<keyof SecondCounts, number>>

const [finest] = historyLevels
const beatMs = finest!.stepMs
/** The least delay of a report after the end of a step; each process reports at another moment. */
const leastDelayMs = 300
const spreadMs = 1500
/** The time after the end of a step up to which a report belongs to it. */
const graceMs = beatMs / 2
/** The number of reports in which longer steps are reported once, so that a process that dies takes at most a minute with it. */
const coarseEvery = 12
/** More rules than this are not remembered between two reports. */
const mostRules = 10_000

/**
 * Reports to Redis what this process has decided, for the history of the whole fleet. It reads the counters every few
 * seconds, so that deciding a call costs nothing more; what is counted while Redis cannot be reached is reported later.
 */
export class FleetReporter {
  readonly #options: FleetReporterOptions
  readonly #deltas = new CountDeltas()
  readonly #process: string
  readonly #phaseMs = leastDelayMs + Math.random() * spreadMs
  /** The sums that are not reported yet, for each length of steps. */
  readonly #pending: readonly Sums[] = historyLevels.map(() => new Map())
  #timer: NodeJS.Timeout | undefined
  /** The clock of Redis minus that of this process. */
  #aheadMs: number | undefined
  #reports = 0

  constructor(options: FleetReporterOptions) {
    this.#options = options
    this.#process = options.process ?? processName()
    this.#deltas.take(options.stats())
  }

  start(): void {
    const delayMs = this.#aheadMs === undefined ? this.#phaseMs : this.#untilNextMs()
    this.#timer = setTimeout(() => {
      const flushed = this.flush().catch(error => reportFault('statistics of the fleet', error))
      void flushed.then(() => {
        if (this.#timer) this.start()
      })
    }, delayMs).unref()
  }

  /** Sends the counts since the last time; those of longer steps less often, unless all are wanted. */
  async flush(all = false): Promise<void> {
    this.#collect()
    const isTurn = ++this.#reports % coarseEvery === 1
    try {
      if (this.#aheadMs === undefined) this.#follow(await readRedisTime(this.#options.send))
      for (const [i, { stepMs, frames }] of historyLevels.entries()) {
        const isDue = all || isTurn || stepMs === beatMs || this.#isLastBeatOf(stepMs)
        if (isDue) await this.#report(stepMs, frames, this.#pending[i]!)
      }
    } catch {
      // counts that were not reported are added to the next report; if only the answer was lost, they are counted twice
      this.#aheadMs = undefined
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.flush(true)
  }

  #collect(): void {
    const { total, rules } = this.#deltas.take(this.#options.stats())
    for (const pending of this.#pending) {
      add(pending, allCalls, total)
      for (const { id, ...counts } of rules) if (pending.has(id) || pending.size < mostRules) add(pending, id, counts)
    }
  }

  async #report(stepMs: number, frames: number, pending: Sums): Promise<void> {
    const counted = new Map(pending)
    pending.clear()
    const { send, prefix } = this.#options
    const at = this.#stepAt(stepMs) * stepMs
    const total = counted.get(allCalls)!
    const rows: (readonly [field: string, counts: SecondCounts])[] = [
      [fieldOfRule(allCalls), total],
      [fieldOfProcess(this.#process), total],
      ...busiest(counted).map(([id, counts]) => [fieldOfRule(id), counts] as const),
    ]
    const fields = rows.flatMap(([field, counts]) => [field, ...historyNames.map(name => String(counts[name]))])
    const ttlMs = stepMs * (frames + 2)
    try {
      const key = keyOfStep(prefix, stepMs, at)
      this.#follow(parseTime(await evaluate(send, addToStep, [key], [String(ttlMs), ...fields])))
    } catch (error) {
      for (const [id, counts] of counted) add(pending, id, counts)
      throw error
    }
  }

  /** Returns the step that is reported now; `laterMs` from now on. */
  #stepAt(stepMs: number, laterMs = 0): number {
    return Math.floor((Date.now() + this.#aheadMs! - graceMs + laterMs) / stepMs)
  }

  #isLastBeatOf(stepMs: number): boolean {
    return this.#stepAt(stepMs, beatMs) > this.#stepAt(stepMs)
  }

  #follow(redisMs: number): void {
    this.#aheadMs = redisMs - Date.now()
  }

  #untilNextMs(): number {
    const now = Date.now() + this.#aheadMs!
    const next = Math.ceil((now - this.#phaseMs + 1) / beatMs) * beatMs + this.#phaseMs
    return next - now
  }
}

const addToStep = scriptOf(`local MOST_FIELDS = ${mostFields}\n${addHistory}`)

function add(sums: Sums, id: string, counts: SecondCounts): void {
  const known = sums.get(id)
  if (known) for (const name of historyNames) known[name] += counts[name]
  else sums.set(id, { ...counts })
}

function busiest(sums: Sums): [string, SecondCounts][] {
  const rules = [...sums].filter(([id]) => id !== allCalls)
  if (rules.length <= mostReportedRules) return rules
  const calls = ({ allowed, refused }: SecondCounts) => allowed + refused
  return rules.sort(([, one], [, other]) => calls(other) - calls(one)).slice(0, mostReportedRules)
}

/** Returns machine and process, as an operator would look for them. */
function processName(): string {
  return `${hostname()
    .replace(/[^\w.-]/g, '-')
    .slice(0, 64)}:${process.pid}`
}
