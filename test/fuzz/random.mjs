import { seededRandom } from '../helpers/seeded-random.mjs'

/** Numbers that depend on the seed only, so that a round can be run again. */
export function createRandom(seed) {
  const next = seededRandom(hash(String(seed)))
  const int = (least, most) => least + Math.floor(next() * (most - least + 1))
  const pick = list => list[int(0, list.length - 1)]
  return {
    next,
    int,
    pick,
    chance: probability => next() < probability,
    /** One value of `[weight, value]` pairs. */
    weighted(pairs) {
      let left = next() * pairs.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, value] of pairs) {
        left -= weight
        if (left < 0) return value
      }
      return pairs.at(-1)[1]
    },
    /** Random bytes, one character each. */
    bytes: length => Array.from({ length }, () => String.fromCharCode(int(0, 255))).join(''),
    list: (length, create) => Array.from({ length }, (_, index) => create(index)),
  }
}

/** A 32-bit hash of a text (FNV-1a). */
export function hash(text) {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  return value >>> 0
}
