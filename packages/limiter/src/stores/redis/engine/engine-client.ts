import { evaluateWith } from '../script/evaluate-script.ts'
import type { SendCommand } from '../send-command.ts'
import type { Engine } from './engine.ts'

/** How long the script is used after a library could not be loaded for a reason that may pass. */
const RETRY_MS = 10_000

export interface EngineClientOptions {
  readonly send: SendCommand
  /** Sends a command to every master; left out if the client of a Cluster cannot, which then gets the script. */
  readonly sendToMasters?: SendCommand | undefined
  /** Called once if the user of Redis may not load or call functions. */
  readonly onForbidden?: ((error: unknown) => void) | undefined
}

/**
 * Runs the engine: as a function, which it loads when Redis does not have it, at first, after FUNCTION FLUSH or after a failover;
 * and as a script if Redis is older than functions or does not permit them.
 */
export class EngineClient {
  readonly #options: EngineClientOptions
  /** When functions are tried again, by the clock of this process; never if it is infinite. */
  #scriptUntilMs: number
  #loading: { readonly engine: Engine; readonly done: Promise<void> } | undefined

  constructor(options: EngineClientOptions) {
    this.#options = options
    this.#scriptUntilMs = options.sendToMasters ? 0 : Number.POSITIVE_INFINITY
  }

  /** True if the engine runs as a script at present, which remembers nothing from one run to the next. */
  get usesScript(): boolean {
    return performance.now() < this.#scriptUntilMs
  }

  /** `rest`: the number of keys, the keys and the arguments. */
  async run(engine: Engine, rest: readonly string[]): Promise<unknown> {
    if (this.usesScript) return this.#runScript(engine, rest)
    try {
      return await this.#options.send(['FCALL', engine.name, ...rest])
    } catch (error) {
      if (isMissing(error)) return this.#loadAndRun(engine, rest)
      if (!this.#isUnusable(error)) throw error
      return this.#runScript(engine, rest)
    }
  }

  async #loadAndRun(engine: Engine, rest: readonly string[]): Promise<unknown> {
    try {
      await this.#load(engine)
      return await this.#options.send(['FCALL', engine.name, ...rest])
    } catch (error) {
      if (!this.#isUnusable(error)) {
        if (!isMissing(error) && !isLoadError(error)) throw error
        this.#scriptUntilMs = performance.now() + RETRY_MS
      }
      return this.#runScript(engine, rest)
    }
  }

  /** All batches that wait for the library load it once. */
  #load(engine: Engine): Promise<void> {
    if (this.#loading?.engine !== engine) {
      const done = this.#options.sendToMasters!(['FUNCTION', 'LOAD', engine.library]).then(
        () => {},
        (error: unknown) => {
          // another process was faster
          if (!/already exists/i.test(String(error))) throw new LoadError(error)
        },
      )
      this.#loading = { engine, done: done.finally(() => (this.#loading = undefined)) }
    }
    return this.#loading!.done
  }

  /** Whether Redis has no functions, or does not permit them. */
  #isUnusable(error: unknown): boolean {
    const text = String(error)
    const isForbidden = /NOPERM.*'(?:fcall|function(?:\|load)?)'/i.test(text)
    if (!isForbidden && !/unknown command/i.test(text)) return false
    if (isForbidden && this.#scriptUntilMs !== Number.POSITIVE_INFINITY) this.#options.onForbidden?.(error)
    this.#scriptUntilMs = Number.POSITIVE_INFINITY
    return true
  }

  #runScript({ script }: Engine, rest: readonly string[]): Promise<unknown> {
    return evaluateWith(this.#options.send, script, rest)
  }
}

class LoadError extends Error {
  constructor(cause: unknown) {
    super(`the function library cannot be loaded: ${String(cause)}`, { cause })
  }
}

function isLoadError(error: unknown): boolean {
  return error instanceof LoadError
}

function isMissing(error: unknown): boolean {
  return /function not found/i.test(String(error))
}
