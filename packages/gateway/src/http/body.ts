import type { IncomingMessage, ServerResponse } from 'node:http'

/** Whether a call says that it has a body. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

const waiting = new WeakSet<IncomingMessage>()

/** Remembers a caller who asks before he sends the body. */
export function waitToContinue(request: IncomingMessage): void {
  waiting.add(request)
}

/** Tells a caller who waits for it to send the body. */
export function askForBody(request: IncomingMessage, response: ServerResponse): void {
  if (waiting.delete(request)) response.writeContinue()
}
