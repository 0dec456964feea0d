import type { OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'

/** What undici writes behind the last chunk of a body, always without trailers. */
const lastChunk = '\r\n0\r\n\r\n'

/** Sends trailers behind chunked bodies on a socket; `take` gives those of the call whose body ends. */
export function sendTrailers(socket: Socket, take: () => OutgoingHttpHeaders): void {
  const write = socket.write.bind(socket) as (...words: unknown[]) => boolean
  // bodies are written as bytes, so this text is never a part of one
  socket.write = (piece: unknown, ...rest: unknown[]) =>
    write(piece === lastChunk ? withTrailers(take()) : piece, ...rest)
}

function withTrailers(trailers: OutgoingHttpHeaders): string {
  const lines = Object.entries(trailers).flatMap(([name, values]) =>
    [values].flat().map(value => `${name}: ${value}\r\n`),
  )
  return `\r\n0\r\n${lines.join('')}\r\n`
}
