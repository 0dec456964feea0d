import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'

/** Servers with invalid answers; each of them must make the source throw, and nothing more. */
export const nonsense: Readonly<Record<string, (socket: Socket) => void>> = {
  'another protocol': socket => socket.end('220 mail.example.com ESMTP\r\n'),
  'no answer but a hang-up': socket => socket.destroy(),
  'an answer that breaks off': socket => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nrules'),
  'bytes that are no text': socket =>
    socket.end(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n'), Buffer.alloc(4, 0xff)])),
  'an endless answer': socket => {
    const pour = () => {
      while (socket.writable && socket.write('x'.repeat(65_536)));
    }
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n')
    socket.on('drain', pour)
    pour()
  },
  'a failure page': socket => socket.end('HTTP/1.1 500 Oops\r\ncontent-length: 14\r\n\r\n<h1>Oops</h1>\r\n'),
  'a redirect elsewhere': socket =>
    socket.end('HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n'),
}

/** Runs a test beside a server that answers the first data of each connection with what `talk` returns. */
export async function withServer(
  talk: (socket: Socket) => void,
  test: (port: number, connected: Promise<void>) => Promise<void>,
): Promise<void> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('data', () => talk(socket))
  })
  const connected = new Promise<void>(resolve => server.once('connection', () => resolve()))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  try {
    await test(address.port, connected)
  } finally {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  }
}
