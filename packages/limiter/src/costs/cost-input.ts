import type { UsageFormat } from './usage/usage-format.ts'

/** The place of a part of an estimate: a field of the request's body, the length of a list in it, a header, or the size of the body. */
export type ReserveSource = (
  | { readonly kind: 'json'; readonly path: readonly string[] }
  | { readonly kind: 'items'; readonly path: readonly string[] }
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'bytes'; readonly per: number }
  | { readonly kind: 'number'; readonly amount: number }
) & { readonly weight: number }

/** The charge of a call before its cost is known. */
export interface ReserveInput {
  /** The sources; the largest that the request has counts. */
  readonly from: readonly ReserveSource[]
  readonly plus: readonly ReserveSource[]
  /** The factors of `from`, such as the number of answers that are asked for: the largest of each group, and at least 1. */
  readonly times: readonly (readonly ReserveSource[])[]
  /** For a request that has none of `from`; left out, `max`. */
  readonly typical?: number | undefined
  readonly min: number
  readonly max: number
}

/** The place of the cost once the answer is there. */
export type SettleSource =
  | { readonly kind: 'json'; readonly path: readonly string[] }
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'usage'; readonly format: UsageFormat }

/** The cost of a token of each kind. */
export interface Weights {
  readonly input: number
  readonly cached: number
  readonly output: number
}

/** The way in which a call is settled. */
export interface SettleInput {
  /** The first that the answer has counts. */
  readonly from: readonly SettleSource[]
  readonly weights: Weights
  /** The highest cost that is counted; an answer that reports more counts as this. */
  readonly max: number
}
