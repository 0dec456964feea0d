import { performance } from 'node:perf_hooks'

/** The command that counts calls. */
const COUNTS = 'FCALL'

/** This process's clock, in microseconds since 1970. */
export const clockUs = () => (performance.timeOrigin + performance.now()) * 1000

/**
 * Sends Diana's commands, each between two looks at the clock of Redis on the same connection, so that it is known when
 * Redis judged a call whatever the processes' clocks say. Whatever began in one turn of the event loop is judged by
 * the commands that Diana sends next.
 */
export class RedisClockProbe {
  #clientOf
  #begun = []
  #turn
  /** The turn that Redis answered last. */
  answered
  /** By how much the clock of Redis is ahead of this process's: surely not less, surely not more. */
  aheadUs = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY }

  /** `clientOf` gives the connection that a command is to be sent on. */
  constructor(clientOf) {
    this.#clientOf = clientOf
  }

  /** Calls `tell` with the turn in which Redis learns of what happens now. */
  note(tell) {
    this.#begun.push(tell)
  }

  send = async command => {
    // who is there, and what was counted by the minute, judges nobody
    const client = this.#clientOf(command)
    if (command[0] !== COUNTS) return await client.call(...command)
    const turn = this.#currentTurn()
    const sentAt = clockUs()
    const answers = await client.pipeline([['time'], ['call', ...command], ['time']]).exec()
    const receivedAt = clockUs()
    for (const [error] of answers) if (error) throw error
    const [before, answer, after] = answers.map(([, value]) => value)
    turn.earliest = Math.min(turn.earliest, inMicroseconds(before))
    turn.latest = Math.max(turn.latest, inMicroseconds(after))
    const { least, most } = this.aheadUs
    this.aheadUs = {
      least: Math.max(least, inMicroseconds(after) - receivedAt),
      most: Math.min(most, inMicroseconds(before) - sentAt),
    }
    this.answered = turn
    return answer
  }

  #currentTurn() {
    if (!this.#turn) {
      this.#turn = { earliest: Number.POSITIVE_INFINITY, latest: Number.NEGATIVE_INFINITY }
      queueMicrotask(() => {
        this.#turn = undefined
      })
    }
    // also what began since the last command of this turn
    for (const tell of this.#begun.splice(0)) tell(this.#turn)
    return this.#turn
  }
}

function inMicroseconds([seconds, microseconds]) {
  return Number(seconds) * 1e6 + Number(microseconds)
}
