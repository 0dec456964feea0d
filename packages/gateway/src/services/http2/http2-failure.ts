import { constants } from 'node:http2'

/** The service has said that it did not begin with the call, so that it may be sent again (RFC 9113, section 8.7). */
export class ServiceRefused extends Error {
  readonly code = 'DIANA_HTTP2_REFUSED'
}

/** The service does not serve this call because of what the call is like, such as for the number of its headers. */
export class ServiceUnwilling extends Error {
  readonly code = 'DIANA_HTTP2_UNWILLING'
}

/** Reports that what the service sent is not HTTP/2, or not an answer. */
export class ServiceGarbled extends Error {
  readonly code = 'DIANA_HTTP2_GARBLED'
}

/** Reports that a service was late, under undici's name, so that both mean the same to callers. */
export class ServiceLate extends Error {
  readonly code = 'UND_ERR_HEADERS_TIMEOUT'
}

/** Codes of connections that broke, as opposed to what was said on them. */
const broken = /^E[A-Z]+$/

/** Says what the end of a stream means: an error of Node's, if there is one, and the code of its RST_STREAM. */
export function http2Failure(error: unknown, rstCode: number | undefined, hasAnswered: boolean): Error {
  if (rstCode === constants.NGHTTP2_REFUSED_STREAM) return new ServiceRefused('the service refused the stream')
  if (rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM)
    return new ServiceUnwilling('the service found the call excessive')
  const cause = rootOf(error)
  const code = String((cause as NodeJS.ErrnoException | undefined)?.code ?? '')
  if (cause instanceof Error && broken.test(code) && !hasAnswered) return cause
  const why = cause instanceof Error ? cause.message : `the stream was reset with code ${rstCode}`
  return new ServiceGarbled(why, { cause })
}

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? rootOf(error.cause) : error
}
