import type { Shapes } from '../../common/option-shape.ts'
import type * as z from '../../shapes/index.ts'
import { decodeText, LARGEST_BYTES, tooLarge } from './text.ts'
import { TIMEOUT_MS, within } from './within.ts'

/** A request to a server. */
export interface TextRequest {
  readonly method?: 'POST' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A server's whole answer. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** The bounds of a server's answer in size and time, if not the usual ones. */
export interface ReplyBounds {
  /** The time by which it may delay the answer beyond the usual. */
  readonly waitMs?: number
  /** The time that it may take in all. */
  readonly timeoutMs?: number
  readonly mostBytes?: number
}

/** Sends a request and reads the answer, bounded in size and in time. */
export async function fetchText(
  url: URL,
  signal: AbortSignal,
  request: TextRequest & ReplyBounds = {},
): Promise<Reply> {
  const { waitMs = 0, timeoutMs = TIMEOUT_MS, mostBytes = LARGEST_BYTES, ...init } = request
  return within(timeoutMs + waitMs, signal, async signal => {
    const response = await fetch(url, { ...init, signal, redirect: 'manual' })
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length
      if (bytes > mostBytes)
        throw mostBytes < LARGEST_BYTES ? new Error(`answered more than ${mostBytes} bytes`) : tooLarge()
      chunks.push(chunk)
    }
    return { status: response.status, headers: response.headers, text: decodeText(Buffer.concat(chunks)) }
  })
}

/** Says what an unexpected status means. */
export function statusError({ status }: { readonly status: number }): Error {
  if (status === 401 || status === 403) {
    return new Error(`refused the credentials (HTTP ${status}); check username, password and token`)
  }
  if (status >= 300 && status < 400) return new Error(`redirects elsewhere (HTTP ${status}); write where it really is`)
  return new Error(`answered HTTP ${status}; check its address and its own log`)
}

/** A schema of an answer, created when the first answer is parsed: until then no schema is made. */
export type ReplyShape<Output> = (shapes: Shapes) => z.Schema<Output>

/** Reads an answer in JSON of a known shape. */
export async function parseReply<Output>(text: string, shape: ReplyShape<Output>): Promise<Output> {
  const { schemaKit } = await import('../../common/schema-kit.ts')
  const parsed = shape(schemaKit.z).safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  throw new Error('answered in a shape that this source does not know; check that the address is that of its API')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
