import { get } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { spoeHello } from './plan/spoe.mjs'

const answerMs = 5000

/** Resolves to what `ask` finds, or to the reason why it does not within a time. */
function within(ask) {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, answerMs, `no answer in ${answerMs} ms`)
    ask(outcome => {
      clearTimeout(timer)
      resolve(outcome)
    })
  })
}

// on a connection of its own: one that is kept would be taken for that of a caller who has left
const healthOf = url => () =>
  within(done => {
    const asked = get(`${url}/healthz`, { agent: false }, answer => {
      answer.resume()
      done(answer.statusCode === 200 ? undefined : `the health path answers ${answer.statusCode}`)
    })
    asked.on('error', error => done(error.message))
  })

const grpcHealth = port => () =>
  within(done => {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    const end = outcome => {
      done(outcome)
      session.destroy()
    }
    session.on('error', error => end(error.message))
    const headers = { ':method': 'POST', ':path': '/grpc.health.v1.Health/Check', 'content-type': 'application/grpc' }
    const stream = session
      .request(headers)
      .on('error', error => end(error.message))
      .resume()
    stream.on('trailers', trailers =>
      end(trailers['grpc-status'] === '0' ? undefined : `grpc-status ${trailers['grpc-status']}`),
    )
    stream.end(Buffer.alloc(5))
  })

/** Asks a port that answers anything to a question. */
const answersTo = (port, question) => () =>
  within(done => {
    const socket = connect(port, '127.0.0.1')
    const end = outcome => {
      done(outcome)
      socket.destroy()
    }
    socket.on('error', error => end(error.message))
    socket.on('data', () => end(undefined))
    socket.write(Buffer.from(question, 'latin1'))
  })

const portIn = address => Number(address.split(':').at(-1))

/**
 * The ports of `diana serve`, each of which is fuzzed by itself: the themes that fit it, where it listens, and how a new caller
 * finds that it answers.
 */
export const targets = {
  serve: {
    themes: ['versions', 'resets', 'mixed', 'storm', 'leavers', 'http2', 'upgrades'],
    portOf: ({ url }) => Number(new URL(url).port),
    check: ({ url }) => healthOf(url),
  },
  grpc: {
    themes: ['resets', 'http2', 'versions', 'storm'],
    portOf: ({ grpc }) => portIn(grpc),
    check: ({ grpc }) => grpcHealth(portIn(grpc)),
  },
  spoe: {
    themes: ['spoe', 'spoe', 'storm', 'resets'],
    portOf: ({ spoe }) => portIn(spoe),
    check: ({ spoe }) => answersTo(portIn(spoe), spoeHello()),
  },
  redis: {
    themes: ['resp', 'resp', 'resp', 'storm', 'versions'],
    portOf: ({ redis }) => portIn(redis),
    check: ({ redis }) => answersTo(portIn(redis), 'PING\r\n'),
  },
  admin: {
    themes: ['versions', 'mixed', 'storm', 'leavers', 'upgrades', 'resets'],
    portOf: ({ admin }) => Number(new URL(admin).port),
    check: ({ admin }) => healthOf(admin),
  },
}
