import { fork } from 'node:child_process'
import cluster from 'node:cluster'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLimiter, type Limiter } from 'diana-limiter'
import { documentOf, faultCounts } from 'diana-limiter/gateway'
import { LastingStats } from '../../admin/lasting-stats.ts'
import type { ListeningSocket, ServerHandle } from '../../http/listening-socket.ts'
import { shareStickySecret } from '../../services/balancing/sticky-cookie.ts'
import { addCounts, type HttpStats, httpCountersOf, mergeHttpStats } from '../../telemetry/http-stats.ts'
import type { ServerProcess, ServerProcessOptions, ServerProgram } from '../server-program.ts'
import { settingsVariable, type Told, type WorkerSettings } from './messages.ts'
import { type KeptProcessParts, SupervisedProcess } from './supervised-process.ts'

export interface SupervisorOptions extends Omit<ServerProcessOptions, 'counting' | 'logger'> {
  /** The program of the workers. */
  readonly program: ServerProgram
  readonly workers: number
  /** The level of the logs that workers write; none unless given. */
  readonly logLevel?: string | undefined
  /** Is given the limiter that reads the rules here, before workers begin. */
  onLimiter?(limiter: Limiter): void
  print(line: string): void
  printError(line: string): void
}

const answerMs = 1000
const endingMs = 2000
const saidAgainMs = 5000
/** A start that takes longer is reported. */
const slowStartMs = 2000

/**
 * Several gateways on one port, and one process that counts for them all. A process that dies is started again; while none
 * counts, each worker goes on by itself.
 */
export class Supervisor implements ServerProcess {
  readonly #options: SupervisorOptions
  readonly #folder: string
  readonly #lines = new Map<string, number>()
  readonly #answers = new Map<number, (answer: unknown) => void>()
  readonly #workers: SupervisedProcess[] = []
  #counting: SupervisedProcess | undefined
  #limiter: Limiter | undefined
  #address = ''
  #also: ServerProcess['also']
  #ready = false
  #question = 0
  readonly #httpStats = new LastingStats({ merge: mergeHttpStats, countersOf: httpCountersOf, progressOf: callsOf })
  #onSocket: (handle: ServerHandle) => void = handle => handle.close()
  /** The inherited socket that workers share, if there is one. */
  #fd: number | undefined
  /** A copy of it: cluster closes the one that workers share when the last of them is gone. */
  #spare: ListeningSocket | undefined

  private constructor(options: SupervisorOptions, folder: string) {
    this.#options = options
    this.#folder = folder
    this.#fd = options.fd
  }

  /** Resolves when all workers take calls. */
  static async start(options: SupervisorOptions): Promise<Supervisor> {
    // a folder that only this user may enter
    const supervisor = new Supervisor(options, await mkdtemp(join(tmpdir(), 'diana-')))
    try {
      await supervisor.#start()
      return supervisor
    } catch (error) {
      await supervisor.close()
      throw error
    }
  }

  get address(): string {
    return this.#address
  }

  get also(): ServerProcess['also'] {
    return this.#also
  }

  /** The rules as this process reads them; it judges no calls itself. */
  get limiter(): Limiter {
    return this.#limiter!
  }

  get workers(): number {
    return this.#workers.length
  }

  isReady(): boolean {
    return this.#ready && this.#workers.some(worker => worker.isReady)
  }

  /** Returns what the workers answer, those that do in time; see questions.ts. */
  async ask(about: string, details?: unknown): Promise<unknown[]> {
    return (await this.askEach(about, details)).map(({ answer }) => answer)
  }

  /** Asks all workers, and returns each answer with the process that gave it. */
  async askEach(about: string, details?: unknown): Promise<{ readonly pid: number; readonly answer: unknown }[]> {
    const asked = this.#workers.map(async worker => {
      const { pid = 0 } = worker
      return { pid, answer: await this.#askOne(worker, about, details) }
    })
    return (await Promise.all(asked)).filter(({ answer }) => answer !== undefined)
  }

  /** The workers that run at this moment. */
  get pids(): number[] {
    return this.#workers.flatMap(({ pid }) => pid ?? [])
  }

  /** Returns a copy of what the workers listen on: they have it from the system, and this process has it not. */
  async socket(): Promise<ListeningSocket | undefined> {
    const worker = this.#workers.find(one => one.isReady)
    if (worker === undefined) return undefined
    return await new Promise(resolve => {
      const late = setTimeout(resolve, answerMs, undefined)
      this.#onSocket = handle => {
        clearTimeout(late)
        resolve({ handle, release: () => handle.close() })
      }
      worker.send({ what: 'socket' })
    })
  }

  async httpStats(): Promise<HttpStats> {
    const answers = await this.askEach('http')
    const stats = answers.map(({ pid, answer }) => ({ pid, stats: answer as HttpStats }))
    const { faults, ...sums } = this.#httpStats.update(stats, this.pids)
    // this process serves the admin API, and has errors of its own
    return { ...sums, faults: addCounts(faults, faultCounts()) }
  }

  reopenLogs(): void {
    for (const worker of this.#workers) worker.send({ what: 'reopen' })
  }

  async close(): Promise<void> {
    this.#ready = false
    this.#spare?.release()
    const { delayMs, timeoutMs } = this.#limiter
      ? this.#options.program.settingsOf(this.#limiter).shutdown
      : { delayMs: 0, timeoutMs: 0 }
    // a worker takes calls for as long as the delay says, ends by its own bound, and is killed only if it does not
    await Promise.all(this.#workers.map(worker => worker.end(delayMs + timeoutMs + endingMs)))
    await this.#limiter?.close()
    await this.#counting?.end(0)
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #start(): Promise<void> {
    const { config, workers, program } = this.#options
    const socket = join(this.#folder, 'counting')
    await this.#begin('the counting process', 'the counting process', parts => {
      const counting = new SupervisedProcess({ ...parts, start: () => startCounting(config, socket) })
      this.#counting = counting
    })
    this.#limiter = await createLimiter({ config, counting: socket, isObserver: true, sections: [program.section] })
    documentOf(this.#limiter).followSection(program.section.name, program.followFixedSettings())
    this.#options.onLimiter?.(this.#limiter)
    // workers take connections from the system themselves: one that is just handed to a worker that dies would be nobody's
    cluster.schedulingPolicy = cluster.SCHED_NONE
    // cookies that one worker has set lead to the same address at the others
    shareStickySecret()
    cluster.setupPrimary({ exec: pathOf('worker-main'), args: [] })
    // one first: what it cannot do, none can
    for (let i = 0; i < workers; i++) {
      await this.#begin('worker', `worker ${i + 1} of ${workers}`, parts =>
        this.#workers.push(new SupervisedProcess({ ...parts, start: () => this.#fork(socket) })),
      )
    }
    this.#ready = true
  }

  /** Starts a process, and resolves when it is ready. */
  #begin(name: string, which: string, start: (parts: Omit<KeptProcessParts, 'start'>) => void): Promise<void> {
    const slow = setTimeout(() => {
      this.#options.print(`Diana waits for ${which}, which has not started within ${slowStartMs / 1000} s.`)
    }, slowStartMs)
    return new Promise<void>((resolve, reject) => {
      start({
        onTold: (told, handle) => {
          if (told.what === 'ready') {
            const { address = this.#address, also = this.#also } = told
            this.#address = address
            this.#also = also
            void this.#keepSpare()
            resolve()
          } else if (told.what === 'socket') this.#onSocket(handle as ServerHandle)
          else this.#hear(told)
        },
        onDied: (pid, why) => this.#options.printError(`${name} ${pid} ended (${why}) and is started again`),
        onFailed: reject,
      })
    }).finally(() => clearTimeout(slow))
  }

  #fork(socket: string) {
    const { config, upstream, host, port, grpcPort, logLevel, workers, program } = this.#options
    const counting = { socket, processes: workers }
    const where = { config, upstream, host, port, grpcPort, fd: this.#descriptor() }
    const settings: WorkerSettings = { ...where, counting, logLevel, program: program.name }
    return cluster.fork({ [settingsVariable]: JSON.stringify(settings) }).process
  }

  #descriptor(): number | undefined {
    if (this.#fd === undefined || !this.#ready || this.#workers.some(worker => worker.isReady)) return this.#fd
    this.#fd = this.#spare?.handle.fd
    this.#spare = undefined
    return this.#fd
  }

  async #keepSpare(): Promise<void> {
    if (this.#fd !== undefined && this.#spare === undefined) this.#spare = await this.socket()
  }

  #hear(told: Told): void {
    if (told.what === 'answer') this.#answers.get(told.question)?.(told.answer)
    else if (told.what === 'print' || told.what === 'printError') this.#say(told.what, told.line)
  }

  /** Prints once what every worker prints. */
  #say(how: 'print' | 'printError', line: string): void {
    const now = performance.now()
    for (const [known, at] of this.#lines) if (now - at > saidAgainMs) this.#lines.delete(known)
    if (this.#lines.has(line)) return
    this.#lines.set(line, now)
    this.#options[how](line)
  }

  #askOne(worker: SupervisedProcess, about: string, details: unknown): Promise<unknown> {
    const question = ++this.#question
    return new Promise(resolve => {
      const settle = (answer: unknown): void => {
        clearTimeout(late)
        this.#answers.delete(question)
        resolve(answer)
      }
      const late = setTimeout(settle, answerMs, undefined)
      this.#answers.set(question, settle)
      if (!worker.send({ what: 'ask', question, about, details })) settle(undefined)
    })
  }
}

function startCounting(config: string, socket: string) {
  const env = { ...process.env, [settingsVariable]: JSON.stringify({ config, socket }) }
  return fork(pathOf('counting-main'), [], { env })
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(`./${program}.js`, import.meta.url))
}

function callsOf({ traffic }: HttpStats): number {
  return traffic.reduce((sum, { calls }) => sum + Object.values(calls).reduce((all, count) => all + count, 0), 0)
}
