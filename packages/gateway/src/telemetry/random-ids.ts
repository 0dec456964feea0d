import { randomFillSync } from 'node:crypto'

const pool = Buffer.allocUnsafe(8192)
let used = pool.length

/** Random bytes in hexadecimal, read from a pool since asking the system costs more than the rest of a call's record. */
export function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.toString('hex', used - bytes, used)
}
