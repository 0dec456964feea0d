import type { Choice } from './index.ts'

/**
 * Rendezvous hashing with weights: every address draws a number for the key, and the largest wins.
 *
 *     draw = -share / ln(u),   u from 0 to 1, by a hash of key and address
 *
 * An address that leaves moves only its own keys, and one that comes takes keys from all others by its share. No state is
 * needed, so that all processes choose alike.
 */
export function rendezvous<One extends Choice>(choices: readonly One[], key: number): One {
  let best = choices[0]!
  let most = -1
  for (const choice of choices) {
    const drawn = -choice.share / Math.log(unit(key, choice.hash))
    if (drawn <= most) continue
    most = drawn
    best = choice
  }
  return best
}

/** Returns a hash of a text, 53 bits long. */
export function hashOf(text: string): number {
  let low = 0x811c9dc5
  let high = 0x9747b28c
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    low = Math.imul(low ^ unit, 0x01000193)
    high = Math.imul(high ^ unit, 0x5bd1e995) ^ (high >>> 15)
  }
  return (mix(high ^ Math.imul(low, 3)) & 0x1fffff) * 2 ** 32 + (mix(low) >>> 0)
}

/** Returns a number between 0 and 1, neither included. */
function unit(key: number, address: number): number {
  const low = mix((key >>> 0) ^ mix(address >>> 0))
  const high = mix(((key / 2 ** 32) >>> 0) ^ mix((address / 2 ** 32) >>> 0) ^ low)
  return ((high & 0xfffff) * 2 ** 32 + (low >>> 0) + 0.5) / 2 ** 52
}

/** Mixes bits by the last steps of MurmurHash3: each bit of the input changes each bit of the result in half of all cases. */
function mix(bits: number): number {
  let mixed = bits
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
