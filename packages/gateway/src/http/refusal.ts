/** An answer of the admin API that is no: a status, a sentence, and what else the caller needs to know. */
export class Refusal extends Error {
  readonly status: number
  readonly more: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    message: string,
    more: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.status = status
    this.more = more
    this.headers = headers
  }
}
