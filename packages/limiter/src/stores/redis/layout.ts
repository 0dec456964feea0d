/**
 * How the callers of a partition are spread over hashes. A partition begins with one hash. When that has become large, callers are
 * spread over 16 shards, then over 256, and so on, each shard small enough to be freed in no time. The script decides; this is
 * what a process knows of it. The code of a layout has four octal digits, the last one first: the lowest and the highest level
 * that callers of the current generation are found at, and the same of the previous one. A level has 16 ** level shards.
 */
export interface RedisLayout {
  readonly code: number
  /** Chosen at random when a partition is first spread, so that callers cannot choose their shard. */
  readonly seed: number
}

export const FAN_OUT = 16
export const HIGHEST_LEVEL = 4
const SHARDS_AT_A_TIME = 64
/** Every shard has two names, so that a new generation needs no renaming. */
export const BANKS: readonly string[] = ['a', 'b']

/** The levels at which callers may be found, without the first, which is the hash of the partition itself. */
export function spreadLevels({ code }: RedisLayout): number[] {
  const [from, to, previousFrom, previousTo] = [code % 8, (code >> 3) % 8, (code >> 6) % 8, (code >> 9) % 8] as const
  const levels = [1, 2, 3, 4]
  return levels.filter(level => (level >= from && level <= to) || (level >= previousFrom && level <= previousTo))
}

/** The number of a caller's shard at a level. */
export function shardOf(hash: number, level: number): number {
  return hash % FAN_OUT ** level
}

/** The names of a shard; the braces in the name of the partition keep all of them in its slot. */
export function shardNames(current: string, level: number, shard: number): string[] {
  return BANKS.map(bank => `${current}:${level}${bank}:${shard}`)
}

/** The names of all shards, level by level, some at a time. */
export function* allParts(current: string, layout: RedisLayout): Generator<{ level: number; names: string[] }> {
  for (const level of spreadLevels(layout)) {
    const shards = FAN_OUT ** level
    for (let first = 0; first < shards; first += SHARDS_AT_A_TIME) {
      const length = Math.min(SHARDS_AT_A_TIME, shards - first)
      yield { level, names: Array.from({ length }, (_, i) => shardNames(current, level, first + i)).flat() }
    }
  }
}

/** HalfSipHash-1-3 of a key with the layout's seed: without the seed, callers do not know which keys share a shard. */
export function hashOf(key: string, seed: number): number {
  const [low, high] = [seed | 0, (seed / 2 ** 32) | 0]
  let [v0, v1, v2, v3] = [low, high, 0x6c796765 ^ low, 0x74656462 ^ high]
  const round = (): void => {
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
  }
  const length = key.length
  for (let i = 0; i <= length; i += 2) {
    // the last word holds the length, so that no two keys have the same words
    const second = i + 1 < length ? key.charCodeAt(i + 1) : length & 0xffff
    const word = (i < length ? key.charCodeAt(i) : 0) | (second << 16)
    v3 ^= word
    round()
    v0 ^= word
  }
  v2 ^= 0xff
  round()
  round()
  round()
  return (v1 ^ v3) >>> 0
}
