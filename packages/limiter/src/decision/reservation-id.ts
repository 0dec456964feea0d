import { randomInt } from 'node:crypto'

// not at load time: some runtimes have no random numbers before the first request
let lastId: number | undefined

/** An id that no other process has, and no other call of this one. */
export function nextReservationId(): number {
  lastId = (lastId ?? randomInt(2 ** 47)) + 1
  return lastId
}
