import type { Algorithm } from './algorithms/algorithm.ts'
import type { Clock } from './common/clock.ts'
import type { Dimension } from './dimensions/dimension.ts'
import type { DocumentOptions, StoreOptions } from './rules/schema/options.ts'
import type { Section } from './rules/schema/section.ts'
import type { SourceKind } from './sources/source.ts'
import type { RedisTarget } from './stores/redis/connection/client.ts'

/** A rule file's path, or the words of a rule file in code; and what is not a word of rules. */
export interface LimiterOptions extends Omit<DocumentOptions, 'store'> {
  /** Where rules are counted for the whole fleet: a URL, URLs of a Cluster, a client, or a function. */
  readonly store?: (StoreOptions & { readonly redis: RedisTarget }) | undefined
  /** Path of a rule file; the rules then come from there. */
  readonly config?: string | undefined
  /** For tests and replays. */
  readonly clock?: Clock | undefined
  /** The ways of counting that rules may name; start from the exported `algorithms` and add yours. */
  readonly algorithms?: readonly Algorithm[] | undefined
  /** The ways to tell callers apart; start from the exported `dimensions` and add yours. */
  readonly dimensions?: readonly Dimension[] | undefined
  /** The config centres that `remote` may name; start from the exported `sources` and add yours. */
  readonly sources?: readonly SourceKind[] | undefined
  /** Further sections of the rule file, for programs built around a limiter; see `documentOf` in `diana-limiter/gateway`. */
  readonly sections?: readonly Section[] | undefined
  /**
   * The socket of a counting process, with which other processes of this machine count together; see `serveCounting`. If it is
   * said how many processes they are, each has its share of the limits from the start if the counting process dies.
   */
  readonly counting?: string | { readonly socket: string; readonly processes: number } | undefined
  /** Whether this process judges no calls and only looks: no share of a limit is set aside for it. */
  readonly isObserver?: boolean | undefined
  /** How many keys are counted apart in this process; default a million. */
  readonly maxKeys?: number | undefined
}
