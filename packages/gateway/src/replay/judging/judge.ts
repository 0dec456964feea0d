import type { Call } from 'diana-limiter'
import type { RuleFigures, TotalFigures } from '../figures/figures.ts'

/** The statements of a log about a call besides the call itself. */
export interface LoggedCall {
  /** The moment when it came, in microseconds since 1970: exact, or the beginning of the tick in which it came. */
  readonly at: number
  /** The order of calls of one moment, if the log has it. */
  readonly turn: number
  readonly status: number | undefined
  /** NaN if it is not known. */
  readonly durationUs: number
  /** The order of its end among the turns of calls, if the log has it. */
  readonly endTurn?: number | undefined
  /** The part of the duration that the call had waited because of a rule. */
  readonly waitUs?: number | undefined
  /** True if the caller left before the answer. */
  readonly left?: boolean | undefined
  /** The status by which rules judged its end, if it is not `status`: 0 if they did not know it. */
  readonly outcome?: number | undefined
  /** True if the gateway answered in place of a service. */
  readonly own?: boolean | undefined
}

export interface JudgeOptions {
  /** The most callers of one rule that are counted. */
  readonly maxKeys: number
}

/** Judges the calls of a log, in the order of their moments. */
export interface Judge {
  readonly total: TotalFigures
  readonly rules: readonly RuleFigures[]
  /** Gives a promise if calls wait, and the next one has to be added after that. */
  add(call: Call, logged: LoggedCall): void | Promise<void>
  finish(): void | Promise<void>
}
