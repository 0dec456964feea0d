const BITS = 12
const REGISTERS = 1 << BITS

/** Estimates how many different texts it was given, within about 2 %, in 4 KiB (HyperLogLog). */
export class Distinct {
  readonly #registers = new Uint8Array(REGISTERS)

  add(text: string): void {
    const hash = hashText(text)
    const register = hash >>> (32 - BITS)
    const rank = Math.clz32((hash << BITS) | (1 << (BITS - 1))) + 1
    if (rank > this.#registers[register]!) this.#registers[register] = rank
  }

  get count(): number {
    let sum = 0
    let zeros = 0
    for (const rank of this.#registers) {
      sum += 2 ** -rank
      if (rank === 0) zeros++
    }
    const estimate = ((0.7213 / (1 + 1.079 / REGISTERS)) * (REGISTERS * REGISTERS)) / sum
    if (estimate <= 2.5 * REGISTERS && zeros > 0) return Math.round(REGISTERS * Math.log(REGISTERS / zeros))
    return Math.round(estimate)
  }
}

/** Computes FNV-1a, mixed once more: its low bits alone are not random enough. */
function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
