import { ProtoReader, tagOf, wire } from '../../protobuf/proto-reader.ts'
import { ProtoWriter } from '../../protobuf/proto-writer.ts'
import type { GrpcMethod } from '../grpc-method.ts'
import { frameHeadBytes, writeFrameHead } from '../message-frames.ts'
import { type ProtoFile, type ProtoMessage, writeFileDescriptor } from './file-descriptor.ts'
import { protoFiles } from './proto-files.ts'

const versions = ['v1', 'v1alpha']
const notFound = 5
const unimplemented = 12
const requestTag = (field: number): number => tagOf(field, wire.bytes)

/** The files that are known, by their names and by what is defined in them. */
class FileIndex {
  readonly services: readonly string[]
  readonly #byName = new Map<string, ProtoFile>()
  readonly #bySymbol = new Map<string, ProtoFile>()

  constructor(files: readonly ProtoFile[]) {
    const services: string[] = []
    for (const file of files) {
      this.#byName.set(file.name, file)
      for (const { name, methods } of file.services ?? []) {
        services.push(`${file.package}.${name}`)
        this.#bySymbol.set(`${file.package}.${name}`, file)
        for (const method of methods) this.#bySymbol.set(`${file.package}.${name}.${method.split(' ')[0]}`, file)
      }
      for (const message of file.messages ?? []) this.#addMessage(file, file.package, message)
      for (const { name } of file.enums ?? []) this.#bySymbol.set(`${file.package}.${name}`, file)
    }
    this.services = services
  }

  /** Returns a file and all that it depends on, each before those that need it. */
  named(name: string): Buffer[] | undefined {
    return this.#withDependencies(this.#byName.get(name))
  }

  containing(symbol: string): Buffer[] | undefined {
    return this.#withDependencies(this.#bySymbol.get(symbol))
  }

  #addMessage(file: ProtoFile, scope: string, { name, messages = [], enums = [] }: ProtoMessage): void {
    const full = `${scope}.${name}`
    this.#bySymbol.set(full, file)
    for (const message of messages) this.#addMessage(file, full, message)
    for (const one of enums) this.#bySymbol.set(`${full}.${one.name}`, file)
  }

  #withDependencies(file: ProtoFile | undefined): Buffer[] | undefined {
    if (file === undefined) return undefined
    const found = new Set<ProtoFile>()
    const add = (one: ProtoFile): void => {
      if (found.has(one)) return
      found.add(one)
      for (const name of one.dependencies ?? []) add(this.#byName.get(name)!)
    }
    add(file)
    return [...found].map(writeFileDescriptor)
  }
}

/** Serves `grpc.reflection`, in both versions that clients ask for. */
export function reflectionServices(): GrpcMethod[] {
  const names = versions.map(version => `grpc.reflection.${version}.ServerReflection`)
  let index: FileIndex | undefined
  return names.map(name => ({
    kind: 'stream',
    path: `/${name}/ServerReflectionInfo`,
    open: stream => ({
      message: message => {
        index ??= new FileIndex(protoFiles)
        stream.send(answer(message, index, names))
      },
      end: () => stream.end(),
    }),
  }))
}

function answer(message: Buffer, index: FileIndex, own: readonly string[]): Buffer {
  const reader = new ProtoReader(message)
  let write: (writer: ProtoWriter) => void = writer => writeError(writer, unimplemented, 'this is not answered here')
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === requestTag(3)) write = filesWriter(index.named(reader.text()))
    else if (tag === requestTag(4)) write = filesWriter(index.containing(reader.text()))
    else if (tag === requestTag(7)) {
      reader.skip(tag)
      write = writer => writeServices(writer, [...index.services, ...own])
    } else reader.skip(tag)
  }
  const writer = new ProtoWriter().begin(frameHeadBytes)
  writer.bytes(2, message)
  write(writer)
  return writer.end(writeFrameHead)
}

function filesWriter(files: readonly Buffer[] | undefined): (writer: ProtoWriter) => void {
  if (files === undefined) return writer => writeError(writer, notFound, 'there is no such file or symbol')
  return writer => {
    writer.message(4, () => {
      for (const file of files) writer.bytes(1, file)
    })
  }
}

function writeServices(writer: ProtoWriter, services: readonly string[]): void {
  writer.message(6, () => {
    for (const service of services) writer.message(1, () => void writer.text(1, service))
  })
}

function writeError(writer: ProtoWriter, code: number, message: string): void {
  writer.message(7, () => void writer.number(1, code).text(2, message))
}
