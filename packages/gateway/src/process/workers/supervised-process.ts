import type { ChildProcess } from 'node:child_process'
import { DianaError } from 'diana-limiter'
import { attempt } from 'diana-limiter/gateway'
import type { Order, Told } from './messages.ts'

const firstPauseMs = 50
const longestPauseMs = 5000
const steadyMs = 5000

export interface KeptProcessParts {
  start(): ChildProcess
  /** Takes a message; `handle` is what came with it. */
  onTold(told: Told, handle: unknown): void
  /** Reports that the process ended by itself after it had begun; it is started again. */
  onDied(pid: number | undefined, why: string): void
  /** Reports why it could not begin, the first time it was started. */
  onFailed(error: Error): void
}

/** A process that is started again whenever it ends, sooner if it had run well. */
export class SupervisedProcess {
  readonly #parts: KeptProcessParts
  #child: ChildProcess
  #pauseMs = firstPauseMs
  #hasBegun = false
  #isReady = false
  #ending = false
  #restarting: NodeJS.Timeout | undefined

  constructor(parts: KeptProcessParts) {
    this.#parts = parts
    this.#child = this.#start()
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** True if it has said so, and has not ended since. */
  get isReady(): boolean {
    return this.#isReady
  }

  send(order: Order): boolean {
    return this.#child.connected && this.#child.send(order, () => {})
  }

  /** Asks it to end, and waits until it has; one that does not is killed. */
  async end(timeoutMs: number): Promise<void> {
    this.#ending = true
    clearTimeout(this.#restarting)
    const child = this.#child
    if (child.exitCode !== null || child.signalCode !== null) return
    await new Promise<void>(resolve => {
      const late = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
      child.once('exit', () => {
        clearTimeout(late)
        resolve()
      })
      // one that has not begun yet hears no order, but signals
      if (!this.#isReady) child.kill('SIGTERM')
      else if (!this.send({ what: 'end' })) child.kill('SIGKILL')
    })
  }

  #start(): ChildProcess {
    const child = this.#parts.start()
    const startedAt = performance.now()
    const restart = (why: string): void => {
      this.#isReady = false
      if (this.#ending) return
      const report = (): void => {
        if (this.#hasBegun) this.#parts.onDied(child.pid, why)
        else this.#parts.onFailed(new Error(`a process ended before it began (${why})`))
      }
      attempt('processes', report)
      const isSteady = performance.now() - startedAt > steadyMs
      this.#pauseMs = isSteady ? firstPauseMs : Math.min(this.#pauseMs * 2, longestPauseMs)
      this.#startLater(isSteady ? 0 : this.#pauseMs)
    }
    // a process that could not be created has no exit
    child.on('error', error => {
      if (child.pid === undefined) restart(error.message)
    })
    child.on('message', (told: Told, handle: unknown) => {
      if (told.what === 'ready') {
        this.#hasBegun = true
        this.#isReady = true
      }
      if (told.what === 'failed' && !this.#hasBegun) this.#parts.onFailed(errorOf(told))
      this.#parts.onTold(told, handle)
    })
    child.once('exit', (code, signal) => restart(signal ?? `exit code ${code}`))
    return child
  }

  #startLater(pauseMs: number): void {
    const start = (): void => {
      this.#child = this.#start()
    }
    this.#restarting = setTimeout(() => {
      // the system may have no room for a process now
      if (!attempt('processes', start)) this.#startLater(longestPauseMs)
    }, pauseMs)
  }
}

/** Returns the error as it was in the other process. */
function errorOf({ message, details }: Told & { what: 'failed' }): Error {
  const isBadRules = 'code' in details && details.code === 'BAD_RULES'
  return isBadRules ? new DianaError('BAD_RULES', message) : Object.assign(new Error(message), details)
}
