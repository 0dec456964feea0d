/** One change that was made through the admin API. */
export interface AuditEntry {
  /** Milliseconds since 1970. */
  readonly at: number
  /** The id of the operation, as the OpenAPI document names it. */
  readonly operation: string
  /** The rule, document, trial, caller or block that was changed; masked where it names a caller. */
  readonly subject: string
  /** The address that the change came from. */
  readonly from: string
  /** Why it was made, if the operator said so. */
  readonly comment?: string | undefined
}

const most = 1000
const longestSubject = 120

/** Who changed what, and when: the last changes since this process started. */
export class Audit {
  readonly #entries: AuditEntry[] = []

  add({ subject, ...entry }: AuditEntry): void {
    this.#entries.push({ ...entry, subject: subject.slice(0, longestSubject) })
    if (this.#entries.length > most) this.#entries.shift()
  }

  /** The newest first. */
  read(count: number): AuditEntry[] {
    return this.#entries.slice(-count).reverse()
  }
}
