/** A refusal of the admin API; status 0 stands for a gateway that cannot be reached. */
export class Problem extends Error {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>

  constructor(status: number, detail: string, body: Readonly<Record<string, unknown>> = {}) {
    super(detail)
    this.status = status
    this.body = body
  }
}
