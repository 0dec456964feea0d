/** What the head of a request is made of. */
export interface RequestHead {
  readonly method: string
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

/** Methods whose calls without a body are sent without Content-Length. */
const bodiless: readonly string[] = ['GET', 'OPTIONS', 'DELETE']
const invalidInPath = /[^\u0021-\u00ff]/
const invalidInName = /[^a-z\d-]/
const invalidInValue = /[^\t\u0020-\u007e\u0080-\u00ff]/

/**
 * The head of a request without a body as undici writes it, whose connection is kept; undefined if undici has to decide about
 * it. `host` stands in for a Host that the headers do not have.
 */
export function requestHead({ method, path, headers }: RequestHead, host: string): string | undefined {
  if (!bodiless.includes(method) || path.charCodeAt(0) !== 0x2f || invalidInPath.test(path)) return undefined
  let hostInHeaders: string | undefined
  let lines = ''
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]!
    const value = headers[at + 1]!
    if (isForUndici(name) || invalidInName.test(name) || invalidInValue.test(value)) return undefined
    if (name !== 'host') lines += `${name}: ${value}\r\n`
    else if (hostInHeaders === undefined) hostInHeaders = value
    else return undefined
  }
  return `${method} ${path} HTTP/1.1\r\nhost: ${hostInHeaders ?? host}\r\nconnection: keep-alive\r\n${lines}\r\n`
}

/** What decides about the body or the connection. */
function isForUndici(name: string): boolean {
  switch (name) {
    case 'connection':
    case 'content-length':
    case 'expect':
    case 'keep-alive':
    case 'trailer':
    case 'transfer-encoding':
    case 'upgrade':
      return true
    default:
      return false
  }
}
