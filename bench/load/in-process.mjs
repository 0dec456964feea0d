// Requests to a framework without a network: the request listener of its server, called with Node's own request and response
// on a socket that takes what is written and drops it.

import { IncomingMessage, ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { timeCalls } from './time-calls.mjs'

const CALLS = 24_000
const ACCOUNTS = 1000

const rawHeaders = Array.from({ length: ACCOUNTS }, (_, i) => [
  ...['Host', '127.0.0.1:3000'],
  ...['x-account-id', `account-${i}`],
  ...['x-device-id', `device-of-account-${i}`],
])

function openSocket() {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  return Object.assign(socket, { remoteAddress: '127.0.0.1', remotePort: 40_000, setTimeout() {}, encrypted: false })
}

/** Nanoseconds from a request to its last byte, one request at a time. */
export async function timeRequests(server) {
  const socket = openSocket()
  const send = i => {
    const request = new IncomingMessage(socket)
    request.method = 'GET'
    request.url = '/orders'
    request.httpVersion = '1.1'
    request.httpVersionMajor = 1
    request.httpVersionMinor = 1
    // as Node's parser does, with a list of its own for each request
    const headers = rawHeaders[i % ACCOUNTS].slice()
    request._addHeaderLines(headers, headers.length)
    request.complete = true
    request.push(null)
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    return new Promise((resolve, reject) => {
      response.on('finish', () => {
        response.detachSocket(socket)
        response.emit('close')
        if (response.statusCode === 200) resolve(response)
        else reject(new Error(`the server answers with ${response.statusCode}`))
      })
      server.emit('request', request, response)
    })
  }
  return await timeCalls(send, CALLS)
}
