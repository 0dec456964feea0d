/** The versions of the protocol; a client begins with 2. */
export type RespVersion = 2 | 3

/** A simple text, such as `OK`. */
export class Status {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** An error: a code in capitals, and a sentence. */
export class Failure {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** The answer to a command; a map is a flat list in version 2. */
export type Reply = number | string | null | Status | Failure | readonly Reply[] | ReadonlyMap<string, Reply>

export const ok: Status = new Status('OK')

/** Returns a reply as it is sent. */
export function writeReply(reply: Reply, version: RespVersion): string {
  if (typeof reply === 'number') return `:${reply}\r\n`
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`
  if (reply === null) return version === 3 ? '_\r\n' : '$-1\r\n'
  if (reply instanceof Status) return `+${oneLine(reply.text)}\r\n`
  if (reply instanceof Failure) return `-${oneLine(reply.text)}\r\n`
  if (reply instanceof Map) {
    let text = version === 3 ? `%${reply.size}\r\n` : `*${reply.size * 2}\r\n`
    for (const [name, value] of reply) text += writeReply(name, version) + writeReply(value, version)
    return text
  }
  const list = reply as readonly Reply[]
  let text = `*${list.length}\r\n`
  for (let i = 0; i < list.length; i++) text += writeReply(list[i]!, version)
  return text
}

/** Returns a text without the ends of lines: those that a client has sent must not begin another reply. */
function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, ' ').slice(0, 500)
}
