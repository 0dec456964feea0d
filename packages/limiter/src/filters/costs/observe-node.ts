import type { AnswerObserver } from './cost-settling.ts'

/** A response of Node's servers, as far as it is observed. */
export interface ObservedResponse {
  readonly statusCode: number
  readonly headersSent: boolean
  getHeader(name: string): number | string | readonly string[] | undefined
}

type Send = (...args: unknown[]) => unknown

/** Shows what is written to a response to an observer. The response is sent as it would be without one. */
export function observeNode(response: ObservedResponse, observer: AnswerObserver): void {
  const sink = response as unknown as { write: Send; end: Send }
  const { write, end } = sink
  let hasBegun = false
  /** True while `end` runs: the response of HTTP/2 passes its last chunk to `write`. */
  let isEnding = false
  const observe = (chunk: unknown, encoding: unknown): void => {
    if (isEnding) return
    if (!hasBegun) {
      hasBegun = true
      observer.begin(response.statusCode, name => headerOf(response, name))
    }
    if (typeof chunk === 'string') {
      observer.add(Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'))
    } else if (chunk instanceof Uint8Array) observer.add(chunk)
  }
  sink.write = function (this: unknown, ...args) {
    observe(args[0], args[1])
    return write.apply(this, args)
  }
  sink.end = function (this: unknown, ...args) {
    observe(args[0], args[1])
    isEnding = true
    try {
      return end.apply(this, args)
    } finally {
      isEnding = false
    }
  }
}

/** Returns a header of a response; those that were written at once with the status are in the text of the head only. */
export function headerOf(response: ObservedResponse & { _header?: string | null }, name: string): string | undefined {
  const value = response.getHeader(name)
  if (value !== undefined) return String(value)
  const head = response._header
  if (typeof head !== 'string') return undefined
  const line = head.split('\r\n').find(one => one.slice(0, name.length + 1).toLowerCase() === `${name}:`)
  return line?.slice(name.length + 1).trim()
}
