/** Every error Diana raises on purpose has one of these codes. */
export type ErrorCode =
  | 'BAD_RULES' // a rule document or option that cannot be used
  | 'BAD_CALL' // a call or a cost that makes no sense
  | 'SOURCE_FAILED' // a source of rules that cannot be reached or has an invalid answer
  | 'CONFLICT' // a document that was changed since it was read
  | 'READ_ONLY' // a document that Diana cannot write
  | 'LIMITED' // a call of a limited function that its rules refuse
  | 'CLOSED' // used after close()

/** The one error class; the message says what is wrong, where, and what to do. */
export class DianaError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DianaError'
    this.code = code
  }
}
