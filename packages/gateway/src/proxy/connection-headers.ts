/** Whether a header is about one connection, not about the message (RFC 9110, section 7.6.1). */
export function isOfTheConnection(name: string): boolean {
  switch (name) {
    case 'connection':
    case 'keep-alive':
    case 'proxy-connection':
    case 'te':
    case 'trailer':
    case 'transfer-encoding':
    case 'upgrade':
      return true
    default:
      return false
  }
}

/** What must reach the service, whatever a caller says of it. */
const needed: readonly string[] = ['content-length', 'host']

/** The headers that `Connection` names besides the usual ones: they too end here. */
export function namedByConnection(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  const names = connection.split(',').map(name => name.trim().toLowerCase())
  return new Set(names.filter(name => !needed.includes(name)))
}
