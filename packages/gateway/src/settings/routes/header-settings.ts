import { headerFault, textOf, z } from 'diana-limiter/schema'

/** Headers that a proxy writes itself, or that would break the framing of a message. */
const ours: readonly string[] = [
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

function changedHeaderFault(name: string): string | undefined {
  if (!ours.includes(name.toLowerCase())) return headerFault(name)
  return name.toLowerCase() === 'host' ? 'is set by keepHost: leave it out' : 'belongs to the connection: leave it out'
}

/** The name of a header that routes may set or take out, in lower case. */
export const headerName: z.Schema<string> = textOf(changedHeaderFault, 128).transform(name => name.toLowerCase())
const headerValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, { error: 'has a character that no header may have: take it out' })

/** Headers by name, with the value of each. */
export const headersToSet: z.Schema<Record<string, string>> = z.record(headerName, headerValue)
