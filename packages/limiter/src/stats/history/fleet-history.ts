import { within } from '../../common/within.ts'
import type { SendCommand } from '../../stores/redis/send-command.ts'
import type { SecondCounts } from './count-deltas.ts'
import { keyOfStep, parseStep, readRedisTime } from './fleet-steps.ts'
import { historyLevels } from './history-levels.ts'
import { chooseLevel, type HistoryRange, type RangeQuery, type RangeSteps, readRange, stepsOf } from './read-range.ts'
import { StepHistory } from './step-history.ts'

/** A time of the whole fleet. */
export interface FleetRange extends HistoryRange {
  /** The decisions of each process in it. */
  readonly processes: ReadonlyMap<string, SecondCounts>
}

export interface FleetRangeQuery extends RangeQuery {
  /** One process; all unless given. */
  readonly process?: string | undefined
}

interface Level {
  readonly stepMs: number
  readonly frames: number
  readonly rules: StepHistory
  readonly processes: StepHistory
  /** For each place of the ring: the step that was read last once it could change no more, and when one was read that could. */
  readonly final: Float64Array
  readonly readAt: Float64Array
}

/** The time after the end of a step from which it changes no more: all processes have reported. */
const finalMs = 15_000
const timeoutMs = 3000
/** The number of steps that are asked for at one time. */
const mostAsked = 64
/** Steps that may still change are read at most this often. */
const freshMs = 1000
/** The time after the end of a step by which most processes have reported. */
const reportedMs = 2500
const mostProcesses = 1000

/** The history of all processes that share a Redis: steps are read when they are asked for, and kept in bounded memory. */
export class FleetHistory {
  readonly #send: SendCommand
  readonly #prefix: string
  readonly #now: () => number
  readonly #levels: readonly Level[]
  #reading: Promise<void> = Promise.resolve()

  constructor(send: SendCommand, prefix: string, now: () => number = Date.now) {
    this.#send = send
    this.#prefix = prefix
    this.#now = now
    this.#levels = historyLevels.map(level => ({
      ...level,
      rules: new StepHistory({ ...level, maxRows: 1000 }),
      processes: new StepHistory({ ...level, maxRows: mostProcesses }),
      final: new Float64Array(level.frames).fill(-1),
      readAt: new Float64Array(level.frames).fill(Number.NEGATIVE_INFINITY),
    }))
  }

  /** Throws if Redis does not answer. */
  async read(query: FleetRangeQuery): Promise<FleetRange> {
    const now = await within(readRedisTime(this.#send), timeoutMs)
    const level = chooseLevel(this.#levels, query, now)
    const steps = stepsOf(level, query, now - reportedMs)
    // one after the other, so that many readers ask for a step once
    const reading = this.#reading.catch(() => {}).then(() => this.#fill(level, steps, now))
    this.#reading = reading
    await reading
    const { from, to } = steps
    const range =
      query.process === undefined
        ? readRange(level.rules, steps, query.rule)
        : { ...readRange(level.processes, steps, query.process), rules: new Map(), rulesBefore: new Map() }
    return { ...range, processes: level.processes.sums(from, to) }
  }

  async #fill(level: Level, { from, to }: RangeSteps, now: number): Promise<void> {
    const { stepMs, frames } = level
    const first = Math.max(from - (to - from), level.rules.beginningOf(now) - (frames - 1) * stepMs)
    const wanted: number[] = []
    for (let at = level.rules.beginningOf(first); at < to; at += stepMs) {
      const slot = slotOf(at, level)
      if (level.final[slot] !== at && this.#now() - level.readAt[slot]! >= freshMs) wanted.push(at)
    }
    for (let at = 0; at < wanted.length; at += mostAsked) {
      const part = wanted.slice(at, at + mostAsked)
      await within(Promise.all(part.map(step => this.#readStep(level, step, now))), timeoutMs)
    }
  }

  async #readStep(level: Level, at: number, now: number): Promise<void> {
    const { stepMs } = level
    const slot = slotOf(at, level)
    const step = parseStep(await this.#send(['HGETALL', keyOfStep(this.#prefix, stepMs, at)]))
    if (step) {
      level.rules.put(at, step.rules)
      level.processes.put(at, step.processes)
    }
    if (at + stepMs + finalMs < now) level.final[slot] = at
    else level.readAt[slot] = this.#now()
  }
}

function slotOf(at: number, { stepMs, frames }: Level): number {
  return Math.round(at / stepMs) % frames
}
