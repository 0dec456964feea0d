type Listener = () => void

export interface SignalsOptions {
  /** True if the process belongs to a terminal, whose end SIGHUP reports. */
  readonly isTerminal: boolean
  print(line: string): void
}

/**
 * The signals to the command, from before the gateway starts: one that comes while workers are being started must neither end the
 * process without them nor be lost. The second signal to end does not wait for calls in flight.
 */
export class Signals {
  /** Resolves at the first signal to end. */
  readonly stopped: Promise<void>
  /** Called by the signals that ask for new log files. */
  onReopen: Listener = () => {}
  readonly #listeners: [signal: NodeJS.Signals, listener: Listener][] = []

  constructor({ isTerminal, print }: SignalsOptions) {
    const ending: readonly NodeJS.Signals[] = isTerminal ? ['SIGINT', 'SIGTERM', 'SIGHUP'] : ['SIGINT', 'SIGTERM']
    let isStopped = false
    this.stopped = new Promise(resolve => {
      const stop = (): void => {
        if (isStopped) process.exit(1)
        isStopped = true
        resolve()
      }
      for (const signal of ending) this.#on(signal, stop)
    })
    if (!isTerminal) {
      this.#on('SIGHUP', () => {
        this.onReopen()
        print('SIGHUP: log files are reopened; the rule file and certificates are read whenever they change.')
      })
    }
    // as nginx does; Node would open its debugger
    this.#on('SIGUSR1', () => this.onReopen())
    // one that comes before calls are accepted would end this process
    this.#on('SIGUSR2', () => {})
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
  }

  #on(signal: NodeJS.Signals, listener: Listener): void {
    process.on(signal, listener)
    this.#listeners.push([signal, listener])
  }
}
