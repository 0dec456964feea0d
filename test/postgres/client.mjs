// The part of the client pg that docs/extending.md uses: a pool of connections to a PostgreSQL that trusts this user.
import { connect } from 'node:net'

const JSON_TYPE = 114
const PROTOCOL = 196_608

const text = value => Buffer.from(`${value}\0`)
const int32 = value => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
const int16 = value => int32(value).subarray(2)
const message = (type, ...parts) => {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body])
}
const quoted = value => `"${String(value).replace(/["\\]/g, '\\$&')}"`
const literal = value => (Array.isArray(value) ? `{${value.map(quoted).join()}}` : String(value))

class Client {
  #socket
  #unread = Buffer.alloc(0)
  #answer

  constructor(socket) {
    this.#socket = socket
    socket.on('data', chunk => this.#read(chunk))
    socket.on('error', error => this.#answer?.reject(error))
  }

  open(user) {
    const words = ['user', user, 'database', 'postgres', ''].map(text)
    const body = Buffer.concat([int32(PROTOCOL), ...words])
    return this.#ask(Buffer.concat([int32(body.length + 4), body]))
  }

  query(sql, values) {
    if (values === undefined) return this.#ask(message('Q', text(sql)))
    const given = values.map(value => Buffer.from(literal(value)))
    return this.#ask(
      Buffer.concat([
        message('P', text(''), text(sql), int16(0)),
        message(
          'B',
          text(''),
          text(''),
          int16(0),
          int16(given.length),
          ...given.flatMap(one => [int32(one.length), one]),
          int16(0),
        ),
        message('D', text('P')),
        message('E', text(''), int32(0)),
        message('S'),
      ]),
    )
  }

  end() {
    this.#socket.destroy()
  }

  #ask(bytes) {
    return new Promise((resolve, reject) => {
      this.#answer = { resolve, reject, rows: [], fields: [], error: undefined }
      this.#socket.write(bytes)
    })
  }

  #read(chunk) {
    this.#unread = Buffer.concat([this.#unread, chunk])
    while (this.#unread.length >= 5) {
      const end = 1 + this.#unread.readInt32BE(1)
      if (this.#unread.length < end) return
      const [type, body] = [String.fromCharCode(this.#unread[0]), this.#unread.subarray(5, end)]
      this.#unread = this.#unread.subarray(end)
      this.#receive(type, body)
    }
  }

  #receive(type, body) {
    const answer = this.#answer
    if (type === 'T') answer.fields = fieldsIn(body)
    if (type === 'D') answer.rows.push(rowIn(body, answer.fields))
    if (type === 'E') answer.error = errorIn(body)
    if (type !== 'Z') return
    if (answer.error) answer.reject(answer.error)
    else answer.resolve({ rows: answer.rows })
  }
}

function fieldsIn(body) {
  const fields = []
  let at = 2
  while (fields.length < body.readInt16BE(0)) {
    const end = body.indexOf(0, at)
    fields.push({ name: body.toString('utf8', at, end), type: body.readInt32BE(end + 7) })
    at = end + 19
  }
  return fields
}

function rowIn(body, fields) {
  const row = {}
  let at = 2
  for (const { name, type } of fields) {
    const size = body.readInt32BE(at)
    at += 4
    const value = size < 0 ? null : body.toString('utf8', at, at + size)
    row[name] = value !== null && type === JSON_TYPE ? JSON.parse(value) : value
    at += Math.max(0, size)
  }
  return row
}

function errorIn(body) {
  const words = body.toString().split('\0')
  const word = letter => words.find(one => one.startsWith(letter))?.slice(1)
  return Object.assign(new Error(word('M')), { code: word('C') })
}

/** Connections to the server behind a socket, at most `most` at one time. */
export class Pool {
  #idle = []
  #waiting = []
  #all = new Set()

  constructor(path, user, most = 10) {
    Object.assign(this, { path, user, most })
  }

  async connect() {
    const client = this.#idle.pop() ?? (this.#all.size < this.most ? await this.#open() : await this.#next())
    const release = (isBroken = false) => {
      if (!isBroken) return this.#free(client)
      this.#all.delete(client)
      client.end()
      const next = this.#waiting.shift()
      if (next) this.#open().then(next)
    }
    return { query: (sql, values) => client.query(sql, values), release }
  }

  end() {
    for (const client of this.#all) client.end()
  }

  async #open() {
    const client = new Client(connect(this.path))
    this.#all.add(client)
    await client.open(this.user)
    return client
  }

  #next() {
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  #free(client) {
    const next = this.#waiting.shift()
    if (next) next(client)
    else this.#idle.push(client)
  }
}
