import { repeat } from 'diana-limiter/gateway'
import type { FastifyReply } from 'fastify'
import type { Live } from './live.ts'

const keepAliveMs = 15_000
/** A client that reads more slowly than this has left, or cannot follow. */
const mostUnreadBytes = 4 * 1024 * 1024

/** Longer times would overflow a timer. */
const longestMs = 24 * 60 * 60_000

/** Sends what is live as server-sent events, until the reader leaves or their identity ends. */
export function stream(reply: FastifyReply, live: Live, endsAt?: number | undefined): void {
  reply.hijack()
  const { raw } = reply
  const headers = Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)])
  raw.on('error', () => {})
  raw.writeHead(200, { ...Object.fromEntries(headers), 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
  const send = (text: string) => {
    if (raw.writableLength > mostUnreadBytes) raw.destroy()
    else if (!raw.destroyed) raw.write(text)
  }
  // one who comes back after an outage waits two seconds
  send('retry: 2000\n\n')
  const leave = live.follow(({ event, data }) => send(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`))
  const keepAlive = repeat('readers of the live figures', keepAliveMs, () => send(':\n\n'))
  // a client that may still read connects again and signs in again
  const lastsMs = endsAt === undefined ? undefined : Math.min(Math.max(endsAt - Date.now(), 0), longestMs)
  const ending = lastsMs === undefined ? undefined : setTimeout(() => raw.end(), lastsMs).unref()
  raw.on('close', () => {
    clearTimeout(ending)
    keepAlive.stop()
    leave()
  })
}
