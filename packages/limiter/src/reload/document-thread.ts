import type { Worker } from 'node:worker_threads'
import { once } from '../common/once.ts'
import { DianaError } from '../errors.ts'
import type { Vocabulary } from '../rules/parse.ts'
import type { DocumentTasks, DocumentThreadSettings, TaskAnswer, TaskQuestion } from './document-tasks.ts'

/** A shorter text is parsed faster than it is sent to a thread. */
const shortBytes = 4096
const idleMs = 30_000
const timeoutMs = 60_000
const mostMemoryMb = 512

type Result<Task extends keyof DocumentTasks> = ReturnType<DocumentTasks[Task]>

/**
 * Parses and edits long documents in a thread, so that calls are answered meanwhile. Short documents, and those with
 * algorithms, dimensions, sources or sections that were given in code or by plugins, are parsed in this thread.
 */
export class DocumentThread {
  readonly #vocabulary: Vocabulary
  /** Found when the first long document comes: some runtimes let a program read files only by permission. */
  readonly #settings: () => DocumentThreadSettings | undefined
  /** Finds the program of the thread. */
  #program: (() => URL | undefined) | undefined
  readonly #waiting = new Map<number, (answer: TaskAnswer) => void>()
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #id = 0
  #closed = false

  /** `isOwn` is true if the vocabulary has the algorithms, dimensions and sources that Diana brings, and no others. */
  constructor(vocabulary: Vocabulary, isOwn: boolean) {
    this.#vocabulary = vocabulary
    this.#settings = once(() => (isOwn && this.#program?.() ? settingsFor(vocabulary) : undefined))
  }

  /** Loads what finds the program of the thread. Until then, and where modules have no URL, documents are parsed in this thread. */
  async load(): Promise<void> {
    this.#program ??= (await import('./document-program.ts').catch(() => undefined))?.documentProgram
  }

  /** True if a text is long enough for the thread. */
  takes(text: string): boolean {
    if (text.length <= shortBytes || this.#closed || this.#program === undefined) return false
    return this.#settings() !== undefined
  }

  async run<Task extends keyof DocumentTasks>(
    task: Task,
    ...given: Parameters<DocumentTasks[Task]>
  ): Promise<Result<Task>> {
    await this.load()
    if (!this.takes(given[0])) {
      const { createDocumentTasks } = await import('./document-tasks.ts')
      const here = createDocumentTasks(this.#vocabulary)[task] as (...given: readonly unknown[]) => Result<Task>
      return here(...given)
    }
    const { result, failed } = await this.#ask(task, given)
    if (failed === undefined) return result as Result<Task>
    throw new DianaError('BAD_RULES', `the document cannot be read: ${failed}`)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#end('this limiter was closed')
  }

  #ask(task: keyof DocumentTasks, given: readonly unknown[]): Promise<TaskAnswer> {
    const id = ++this.#id
    return new Promise(resolve => {
      const worker = this.#start()
      const late = setTimeout(() => void this.#end('it takes too long; use fewer rules'), timeoutMs)
      this.#waiting.set(id, answer => {
        clearTimeout(late)
        this.#waiting.delete(id)
        resolve(answer)
      })
      worker.postMessage({ id, task, given } satisfies TaskQuestion)
    })
  }

  #start(): Worker {
    clearTimeout(this.#idle)
    if (this.#worker) return this.#worker
    // not imported: runtimes without threads parse documents in place
    const { Worker: Thread } = process.getBuiltinModule('node:worker_threads')
    const worker = new Thread(this.#program!()!, {
      workerData: this.#settings(),
      resourceLimits: { maxOldGenerationSizeMb: mostMemoryMb },
    })
    this.#worker = worker
    worker.on('message', (answer: TaskAnswer) => {
      this.#waiting.get(answer.id)?.(answer)
      if (this.#waiting.size > 0) return
      clearTimeout(this.#idle)
      this.#idle = setTimeout(() => void this.#end(''), idleMs).unref()
      worker.unref()
    })
    worker.on('error', ({ message }) => {
      if (this.#worker === worker) void this.#end(message)
    })
    return worker
  }

  async #end(reason: string): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    clearTimeout(this.#idle)
    for (const [id, answer] of [...this.#waiting]) answer({ id, failed: reason })
    await worker?.terminate()
  }
}

/** Returns what the thread needs to know the same sections; undefined if it cannot know them. */
function settingsFor({ sections }: Vocabulary): DocumentThreadSettings | undefined {
  const modules = sections?.map(({ from }) => from)
  if (modules?.includes(undefined)) return undefined
  return { sections: modules as DocumentThreadSettings['sections'] }
}
