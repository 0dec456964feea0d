import type { CatchUp } from '../catch-up.ts'
import type { Renewal } from '../held-slots.ts'
import type { FleetSettlement, LeaseAnswer, LeaseRequest } from '../store.ts'
import type { RedisCharge, RedisCounter } from './counter.ts'

/**
 * One request to the script: decide all charges of a call at once, refund charges, renew leases, reset a key, or count calls that
 * Redis has missed.
 */
export type ScriptRequest = DecisionRequest | Amendment

export interface DecisionRequest {
  readonly what: 'take' | 'look'
  readonly charges: readonly RedisCharge[]
}

export type Amendment =
  | { readonly what: 'giveBack'; readonly charges: readonly Refund[] }
  | { readonly what: 'renew'; readonly charges: readonly Renewal<RedisCounter>[] }
  | { readonly what: 'catchUp'; readonly charges: readonly RedisCatchUp[] }
  | { readonly what: 'reset'; readonly charges: readonly Reset[] }
  | { readonly what: 'lease'; readonly charges: readonly RedisLease[] }
  | { readonly what: 'settle'; readonly charges: readonly RedisSettlement[] }

/** What was really used of a charge. */
export interface RedisSettlement extends FleetSettlement {
  readonly counter: RedisCounter
}

/** A request for permits that this process holds, the key that Redis keeps the last answer in, and the answer. */
export interface RedisLease extends LeaseRequest<RedisCounter> {
  readonly holderKey: string
  answer: LeaseAnswer | undefined
}

/** A charge that was counted as admitted at `moment`, by the clock of Redis, and is taken back. */
export interface Refund {
  readonly counter: RedisCounter
  readonly key: string
  readonly cost: number
  readonly moment: number
  /** How long before that moment it was charged. */
  readonly wait?: number | undefined
  /** How many keys had been reset in this process when it was charged. */
  readonly resetsBefore?: number | undefined
}

/** A key whose counts are forgotten, with all that was charged so far. */
export interface Reset {
  readonly counter: RedisCounter
  readonly key: string
}

/** Calls of one key that Redis has missed. */
export type RedisCatchUp = CatchUp<RedisCounter>
