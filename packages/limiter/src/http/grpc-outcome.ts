const grpcType = /^application\/grpc(-web(?:-text)?)?(?:\+[\w.-]+)?(?=;|\s|$)/i

/** The statuses of HTTP that those of gRPC stand for, from 0 to 16 (google.rpc.Code). */
const statuses = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401] as const

const UNKNOWN = 500
const PREFIX_BYTES = 5
const TRAILERS = 0x80
const MOST_TRAILER_BYTES = 16_384

/** A function that reads a header of an answer before its body. */
type Header = (name: string) => string | undefined

/** Reads the outcome of an answer of gRPC, whose status in HTTP is 200 whatever came of the call. */
export class GrpcOutcome {
  #status: string | undefined
  /** Finds the trailers in the body, where gRPC-Web has them. */
  readonly #web: WebTrailers | undefined

  private constructor(status: string | undefined, web: WebTrailers | undefined) {
    this.#status = status
    this.#web = web
  }

  /** Makes the outcome of an answer of gRPC; undefined for an answer of another kind. */
  static of(header: Header): GrpcOutcome | undefined {
    const found = grpcType.exec(header('content-type')?.trim() ?? '')
    if (found === null) return undefined
    const kind = found[1]?.toLowerCase()
    return new GrpcOutcome(
      header('grpc-status'),
      kind === undefined ? undefined : new WebTrailers(kind.endsWith('text')),
    )
  }

  add(chunk: Uint8Array): void {
    this.#web?.add(chunk)
  }

  /** Takes the value of a trailer. */
  trailer(name: string, value: string): void {
    if (name.toLowerCase() === 'grpc-status') this.#status = value
  }

  /** The status of HTTP that it stands for. An answer without one, or with one that no service knows, has failed. */
  get status(): number {
    const text = this.#status ?? this.#web?.status
    return text !== undefined && /^\s*\d{1,2}\s*$/.test(text) ? (statuses[Number(text)] ?? UNKNOWN) : UNKNOWN
  }
}

/** The frames of a body of gRPC-Web; the last one has the trailers. They are in Base64 if it is text. */
class WebTrailers {
  status: string | undefined
  readonly #isText: boolean
  #letters = ''
  readonly #prefix = Buffer.alloc(PREFIX_BYTES)
  #prefixLength = 0
  /** The bytes of the frame that are still to come. */
  #left = 0
  #trailers: Buffer[] = []

  constructor(isText: boolean) {
    this.#isText = isText
  }

  add(chunk: Uint8Array): void {
    if (!this.#isText) this.#read(chunk)
    else {
      const letters = this.#letters + Buffer.from(chunk).toString('latin1').replace(/\s/g, '')
      const whole = letters.length - (letters.length % 4)
      this.#letters = letters.slice(whole)
      // several texts may follow one another, each with its padding
      for (const text of letters.slice(0, whole).match(/[^=]+=*/g) ?? []) this.#read(Buffer.from(text, 'base64'))
    }
  }

  #read(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#prefixLength < PREFIX_BYTES) {
        this.#prefix[this.#prefixLength++] = bytes[at++]!
        if (this.#prefixLength === PREFIX_BYTES) this.#left = this.#prefix.readUInt32BE(1)
      } else {
        const piece = bytes.subarray(at, at + this.#left)
        if (this.#isTrailers) this.#trailers.push(Buffer.from(piece))
        this.#left -= piece.length
        at += piece.length
      }
      if (this.#prefixLength === PREFIX_BYTES && this.#left === 0) this.#endFrame()
    }
  }

  get #isTrailers(): boolean {
    return this.#prefix[0] === TRAILERS && this.#prefix.readUInt32BE(1) <= MOST_TRAILER_BYTES
  }

  #endFrame(): void {
    if (this.#isTrailers) {
      const text = Buffer.concat(this.#trailers).toString('latin1')
      this.status = /^grpc-status\s*:([^\r\n]*)/im.exec(text)?.[1]?.trim()
    }
    this.#trailers = []
    this.#prefixLength = 0
  }
}
