import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Repeated, repeat } from 'diana-limiter/gateway'

export interface ServiceManagerOptions {
  readonly env: NodeJS.ProcessEnv
  readonly pid: number
  /** Called once if the service manager cannot be reached. */
  readonly printError: (line: string) => void
}

const program = 'systemd-notify'
const notifyMs = 5000

/**
 * Reports to systemd how this process is doing (sd_notify), if NOTIFY_SOCKET says that it wants to know. Node cannot write to such a
 * socket, so the program systemd-notify does. Messages arrive in the order in which they were given.
 */
export class ServiceManager {
  readonly #options: ServiceManagerOptions
  #last: Promise<void> = Promise.resolve()
  #isDeaf: boolean
  #watchdog: Repeated | undefined

  constructor(options: ServiceManagerOptions) {
    this.#options = options
    this.#isDeaf = !options.env.NOTIFY_SOCKET
  }

  /** Calls are taken. From now on it learns in time that this process is not stuck. */
  ready(): Promise<void> {
    this.#keepAwake()
    return this.#notify('READY=1', `MAINPID=${this.#options.pid}`)
  }

  /** Reports that another process takes over. */
  reloading(): Promise<void> {
    return this.#notify('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
  }

  /** Reports that no other process took over. */
  stillReady(): Promise<void> {
    return this.#notify('READY=1')
  }

  stopping(): Promise<void> {
    this.#watchdog?.stop()
    return this.#notify('STOPPING=1')
  }

  /** Leaves reports to another process from now on. */
  leave(): void {
    this.#watchdog?.stop()
    this.#isDeaf = true
  }

  #keepAwake(): void {
    const { env, pid } = this.#options
    const everyMs = Number(env.WATCHDOG_USEC ?? 0) / 1000 / 2
    if (this.#isDeaf || !(everyMs >= 1) || Number(env.WATCHDOG_PID ?? pid) !== pid) return
    this.#watchdog = repeat('the watchdog of systemd', everyMs, () => this.#notify('WATCHDOG=1'))
  }

  #notify(...words: readonly string[]): Promise<void> {
    if (this.#isDeaf) return Promise.resolve()
    this.#last = this.#last.then(() => this.#send(words))
    return this.#last
  }

  async #send(words: readonly string[]): Promise<void> {
    if (this.#isDeaf) return
    try {
      await promisify(execFile)(program, words, { env: this.#options.env, timeout: notifyMs })
    } catch (error) {
      this.#isDeaf = true
      const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such program' : String(error)
      this.#options.printError(`systemd cannot be notified by ${program} (${why}): install it, or use Type=exec`)
    }
  }
}
