import type { UsageFormat } from './usage/usage-format.ts'

/** Where a part of an estimate is read: a field of the request's body, the length of a list in it, a header, or the size of the body. */
export type ReserveSource = (
  | { readonly kind: 'json'; readonly path: readonly string[] }
  | { readonly kind: 'items'; readonly path: readonly string[] }
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'bytes'; readonly per: number }
  | { readonly kind: 'number'; readonly amount: number }
) & { readonly weight: number }

/** What a call is charged before its cost is known. */
export interface ReserveInput {
  /** Of several that the request has, the largest counts. */
  readonly from: readonly ReserveSource[]
  readonly plus: readonly ReserveSource[]
  /** What multiplies `from`, such as the number of answers that are asked for: the largest of each group, and at least 1. */
  readonly times: readonly (readonly ReserveSource[])[]
  /** For a request that has none of `from`; left out, `max`. */
  readonly typical?: number | undefined
  readonly min: number
  readonly max: number
}

/** Where the cost is read once the answer is there. */
export type SettleSource =
  | { readonly kind: 'json'; readonly path: readonly string[] }
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'usage'; readonly format: UsageFormat }

/** What a token of each kind costs. */
export interface Weights {
  readonly input: number
  readonly cached: number
  readonly output: number
}

/** How a call is settled. */
export interface SettleInput {
  /** The first that the answer has counts. */
  readonly from: readonly SettleSource[]
  readonly weights: Weights
  /** An answer that reports more counts as so much. */
  readonly max: number
}
