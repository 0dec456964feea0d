export interface Random {
  next(): number
  int(least: number, most: number): number
  pick<Value>(list: readonly Value[]): Value
  chance(probability: number): boolean
  weighted<Value>(pairs: readonly (readonly [weight: number, value: Value])[]): Value
  /** Random bytes, one character each. */
  bytes(length: number): string
  list<Value>(length: number, create: (index: number) => Value): Value[]
}

/** Numbers that depend on the seed only. */
export function createRandom(seed: number | string): Random

/** A 32-bit hash of a text. */
export function hash(text: string): number
