import type { Algorithm } from '../algorithms/algorithm.ts'
import type { Clock } from '../common/clock.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import type { DocumentOptions } from '../rules/schema/options.ts'
import type { Section } from '../rules/schema/section.ts'
import type { SourceKind } from '../sources/source.ts'
import type { GivenStore } from './given-store.ts'

/** A rule file's path, or the options of a rule file in code; and the options that a rule file does not have. */
export interface LimiterOptions extends Omit<DocumentOptions, 'store'> {
  /** The store in which rules are counted for the whole fleet: Redis, or one of your own. */
  readonly store?: GivenStore | undefined
  /** Path of a rule file; the rules then come from there. */
  readonly config?: string | undefined
  /** For tests and replays. */
  readonly clock?: Clock | undefined
  /** The ways of counting that rules may name; start from the exported `algorithms` and add yours. */
  readonly algorithms?: readonly Algorithm[] | undefined
  /** The ways to distinguish callers; start from the exported `dimensions` and add yours. */
  readonly dimensions?: readonly Dimension[] | undefined
  /** The config centers that `remote` may name; start from the exported `sources` and add yours. */
  readonly sources?: readonly SourceKind[] | undefined
  /** Further sections of the rule file, for programs built around a limiter; see `documentOf` in `diana-limiter/gateway`. */
  readonly sections?: readonly Section[] | undefined
  /**
   * The socket of a counting process, with which other processes of this machine count together; see `serveCounting`. If the
   * number of processes is given, each has its share of the limits from the start if the counting process dies.
   */
  readonly counting?: string | { readonly socket: string; readonly processes: number } | undefined
  /** True if this process decides no calls and only reads: no share of a limit is reserved for it. */
  readonly isObserver?: boolean | undefined
  /**
   * The longest wait of a call for the fleet's store in milliseconds, whatever `store` says; a function of the sections of the rule file,
   * as it is at the start.
   */
  readonly maxStoreWaitMs?: number | ((sections: Readonly<Record<string, unknown>>) => number) | undefined
  /**
   * The longest wait of a call in milliseconds by a rule with `whenFull: wait`, whatever its `queue` says: a call that would wait longer
   * is refused at once. A function of the sections of the rule file, as it is at the start.
   */
  readonly maxWaitMs?: number | ((sections: Readonly<Record<string, unknown>>) => number) | undefined
  /** The number of keys that are counted separately in this process; default a million. */
  readonly maxKeys?: number | undefined
}
