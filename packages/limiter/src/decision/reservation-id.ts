import { randomInt } from 'node:crypto'

let lastId = randomInt(2 ** 47)

/** An id that no other process has, and no other call of this one. */
export function nextReservationId(): number {
  lastId++
  return lastId
}
