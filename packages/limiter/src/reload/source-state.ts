import { formatMistake, type Mistake } from '../rules/mistake.ts'

/** The status of one source of rules. */
export interface SourceStatus {
  /** For people, without credentials. */
  readonly name: string
  readonly role: 'local' | 'remote'
  /** The version of the document in force; undefined until one was applied. */
  readonly version?: string | undefined
  /** Milliseconds since 1970. */
  readonly takenAt?: number | undefined
  /** True if the document in force is the snapshot of the config center from before the start. */
  readonly fromSnapshot: boolean
  readonly taken: number
  readonly rejected: number
  /** The reason why the newest document was not applied, or why the source cannot be read; undefined if neither. */
  readonly trouble?: string | undefined
}

/** Listeners for what happens to the documents of a source. */
export interface OriginListener {
  onTaken(source: SourceStatus): void
  onRejected(source: SourceStatus, mistakes: readonly Mistake[]): void
  onFailure(source: SourceStatus): void
  /** Reports that the source has no document: the rules of the other side are in force. */
  onMissing(source: SourceStatus): void
}

/** Records the status of one source: each event is counted, stored and reported. */
export class Origin {
  readonly #listener: OriginListener
  #status: SourceStatus

  constructor(name: string, role: SourceStatus['role'], listener: OriginListener) {
    this.#listener = listener
    this.#status = { name, role, fromSnapshot: false, taken: 0, rejected: 0 }
  }

  get status(): SourceStatus {
    return this.#status
  }

  get name(): string {
    return this.#status.name
  }

  /** Notes that a document is in force. */
  take(version: string | undefined, options: { readonly fromSnapshot?: boolean } = {}): void {
    const { fromSnapshot = false } = options
    const { taken } = this.#status
    const takenAt = Date.now()
    this.#status = { ...this.#status, version, takenAt, fromSnapshot, taken: taken + 1, trouble: undefined }
    this.#listener.onTaken(this.#status)
  }

  /** Notes that the source has the document in force again. */
  confirm(version: string | undefined): void {
    if (this.#status.fromSnapshot) this.take(version)
    else this.#status = { ...this.#status, version, trouble: undefined }
  }

  /** Notes that the source has no document, or no longer has one. */
  miss(): void {
    const trouble = `${this.name}: there is no document, so the local rules are in force; write it, or remove remote`
    const isKnown = this.#status.trouble === trouble
    this.#status = { ...this.#status, version: undefined, takenAt: undefined, fromSnapshot: false, trouble }
    if (!isKnown) this.#listener.onMissing(this.#status)
  }

  reject(mistakes: readonly Mistake[]): void {
    const trouble = mistakes.slice(0, 3).map(formatMistake).join('\n')
    this.#status = { ...this.#status, rejected: this.#status.rejected + 1, trouble }
    this.#listener.onRejected(this.#status, mistakes)
  }

  fail({ message }: Error): void {
    const trouble = message.includes(this.name) ? message : `${this.name}: ${message}`
    this.#status = { ...this.#status, trouble }
    this.#listener.onFailure(this.#status)
  }

  /** Returns a mistake of a document as a whole. */
  mistake(message: string): Mistake {
    return { file: this.name, line: 1, column: 1, message }
  }
}
