import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { GatewayRig } from '../helpers/gateway-rig.ts'
import { type Client, runProgram, someBytes, versionOf } from './client.ts'
import { fileService } from './file-service.ts'
import { gitService } from './git-service.ts'

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** A gateway before a service that answers with the digest of what it got, or with the bytes it was asked for. */
async function guardBytes(rig: GatewayRig): Promise<{ url: string; port: number; body: Buffer }> {
  const body = someBytes(5_000_000)
  const { url: to } = await rig.serve((incoming, response) => {
    if (incoming.method === 'GET') {
      response.end(body)
      return
    }
    const hash = createHash('sha256')
    incoming.on('data', piece => hash.update(piece))
    incoming.on('end', () => response.writeHead(201, { 'x-method': incoming.method }).end(hash.digest('hex')))
  })
  const { url, port } = await rig.guard({ gateway: { routes: [{ to }] } })
  return { url, port, body }
}

async function guardFolder(rig: GatewayRig, fill: (folder: string) => void): Promise<string> {
  const folder = rig.folder()
  fill(folder)
  const { url: to } = await rig.serve(fileService(folder))
  return (await rig.guard({ gateway: { routes: [{ to }] } })).url
}

const curl: Client = {
  name: 'curl',
  isInstalledBySetUp: true,
  version: () => versionOf('curl'),
  async use(rig) {
    const { url, body } = await guardBytes(rig)
    const file = join(rig.folder(), 'body')
    writeFileSync(file, body)
    const back = `${file}.back`
    await runProgram('curl', ['-sSf', '-o', back, url])
    expect(sha256(readFileSync(back))).toBe(sha256(body))
    for (const args of [
      ['-T', file],
      ['--data-binary', `@${file}`],
      ['--data-binary', `@${file}`, '-H', 'Transfer-Encoding: chunked'],
      ['--data-binary', `@${file}`, '-H', 'Expect: 100-continue'],
      ['--data-binary', `@${file}`, '--http2'],
      ['--data-binary', `@${file}`, '--http1.0'],
      ['-X', 'PROPFIND', '--data-binary', `@${file}`],
    ]) {
      expect([args, (await runProgram('curl', ['-sSf', ...args, url])).trim()]).toEqual([args, sha256(body)])
    }
    // as a client of a forward proxy, it sends the whole URL as its target
    expect(await runProgram('curl', ['-sSf', '-x', url, '-d', '', 'http://shop.example/a'])).toBe(
      sha256(Buffer.alloc(0)),
    )
  },
}

const git: Client = {
  name: 'git',
  isInstalledBySetUp: true,
  version: () => versionOf('git'),
  async use(rig) {
    const folder = rig.folder()
    const { url: to } = await rig.serve(gitService(folder))
    const { url } = await rig.guard({ gateway: { routes: [{ to }] } })
    const identity = {
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@b',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@b',
    }
    const env = { ...identity, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0', HOME: folder }
    const tell = (cwd: string, ...args: string[]): Promise<string> => runProgram('git', args, { cwd, env })
    await tell(folder, 'init', '-q', '--bare', 'origin.git')
    await tell(join(folder, 'origin.git'), 'config', 'http.receivepack', 'true')
    await tell(folder, 'clone', '-q', `${url}/origin.git`, 'one')
    writeFileSync(join(folder, 'one', 'large'), someBytes(3_000_000))
    await tell(join(folder, 'one'), 'add', '.')
    await tell(join(folder, 'one'), 'commit', '-qm', 'large')
    // larger than what git sends with a length: the push is chunked
    await tell(join(folder, 'one'), 'push', '-q', 'origin', 'HEAD:main')
    await tell(folder, 'clone', '-q', '-b', 'main', `${url}/origin.git`, 'two')
    expect(readFileSync(join(folder, 'two', 'large')).equals(someBytes(3_000_000))).toBe(true)
    await tell(join(folder, 'two'), 'fetch', '-q', '--depth', '1')
  },
}

const pythonProgram = (lines: readonly string[]): string => lines.join('\n')

const python: Client = {
  name: 'Python (http.client, urllib)',
  isInstalledBySetUp: true,
  version: () => versionOf('python3'),
  async use(rig) {
    const { url, port, body } = await guardBytes(rig)
    const file = join(rig.folder(), 'body')
    writeFileSync(file, body)
    const said = await runProgram('python3', [
      '-c',
      pythonProgram([
        'import hashlib, http.client, urllib.request',
        `body = open(${JSON.stringify(file)}, "rb").read()`,
        `kept = http.client.HTTPConnection("127.0.0.1", ${port})`,
        'for method, sent in (("POST", body), ("PUT", iter([body[:9], body[9:]])), ("DELETE", None), ("POST", body)):',
        '    kept.request(method, "/a", sent, encode_chunked=not isinstance(sent, (bytes, type(None))),',
        '                 headers={} if isinstance(sent, (bytes, type(None))) else {"Transfer-Encoding": "chunked"})',
        '    answer = kept.getresponse()',
        '    print(answer.status, answer.read().decode())',
        `print(hashlib.sha256(urllib.request.urlopen("${url}").read()).hexdigest())`,
      ]),
    ])
    const whole = sha256(body)
    expect(said.trim().split('\n')).toEqual([
      `201 ${whole}`,
      `201 ${whole}`,
      `201 ${sha256(Buffer.alloc(0))}`,
      `201 ${whole}`,
      whole,
    ])
  },
}

const requests: Client = {
  name: 'Python requests (urllib3)',
  isInstalledBySetUp: false,
  version: () =>
    versionOf('python3', [
      '-c',
      'import requests, urllib3; print("requests", requests.__version__, "urllib3", urllib3.__version__)',
    ]),
  async use(rig) {
    const { url, body } = await guardBytes(rig)
    const file = join(rig.folder(), 'body')
    writeFileSync(file, body)
    const said = await runProgram('python3', [
      '-c',
      pythonProgram([
        'import hashlib, requests',
        `url, file = "${url}", ${JSON.stringify(file)}`,
        'session = requests.Session()',
        'print(session.post(url, data=open(file, "rb")).text)',
        'print(session.put(url, data=iter([b"a", b"b"])).text)',
        'print(hashlib.sha256(session.get(url, stream=True).raw.read()).hexdigest())',
        'print(session.post(url, files={"f": ("n", b"x")}).status_code)',
      ]),
    ])
    expect(said.trim().split('\n')).toEqual([sha256(body), sha256(Buffer.from('ab')), sha256(body), '201'])
  },
}

const java: Client = {
  name: 'Java HttpClient',
  isInstalledBySetUp: false,
  version: () => (versionOf('javac', ['-version']) === undefined ? undefined : versionOf('java', ['-version'])),
  async use(rig) {
    const { url, body } = await guardBytes(rig)
    const folder = rig.folder()
    const file = join(folder, 'body')
    writeFileSync(file, body)
    writeFileSync(
      join(folder, 'Call.java'),
      `import java.net.URI; import java.net.http.*; import java.nio.file.*; import java.util.*; import java.security.*;
public class Call {
  public static void main(String[] a) throws Exception {
    var client = HttpClient.newHttpClient(); // offers h2c
    for (var method : List.of("POST", "PUT", "DELETE")) {
      var call = HttpRequest.newBuilder(URI.create(a[0])).method(method, HttpRequest.BodyPublishers.ofFile(Path.of(a[1]))).build();
      System.out.println(client.send(call, HttpResponse.BodyHandlers.ofString()).body());
    }
    var get = HttpRequest.newBuilder(URI.create(a[0])).build();
    var bytes = client.send(get, HttpResponse.BodyHandlers.ofByteArray()).body();
    System.out.println(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes)));
  }
}
`,
    )
    const said = await runProgram('java', [join(folder, 'Call.java'), url, file], { cwd: folder })
    expect(said.trim().split('\n')).toEqual(Array(4).fill(sha256(body)))
  },
}

const go: Client = {
  name: 'Go net/http',
  isInstalledBySetUp: false,
  version: () => versionOf('go', ['version']),
  async use(rig) {
    const { url, body } = await guardBytes(rig)
    const folder = rig.folder()
    const file = join(folder, 'body')
    writeFileSync(file, body)
    writeFileSync(
      join(folder, 'call.go'),
      `package main

import ("crypto/sha256"; "fmt"; "io"; "net/http"; "os")

func main() {
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		file, _ := os.Open(os.Args[2])
		call, _ := http.NewRequest(method, os.Args[1], file)
		answer, err := http.DefaultClient.Do(call)
		if err != nil { panic(err) }
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(string(text))
	}
	answer, err := http.Get(os.Args[1])
	if err != nil { panic(err) }
	bytes, _ := io.ReadAll(answer.Body)
	fmt.Printf("%x\\n", sha256.Sum256(bytes))
}
`,
    )
    const env = { GOCACHE: join(folder, 'cache'), GOFLAGS: '-mod=mod', GO111MODULE: 'off', HOME: folder }
    const said = await runProgram('go', ['run', join(folder, 'call.go'), url, file], { cwd: folder, env })
    expect(said.trim().split('\n')).toEqual(Array(4).fill(sha256(body)))
  },
}

const aria2c: Client = {
  name: 'aria2c',
  isInstalledBySetUp: false,
  version: () => versionOf('aria2c'),
  async use(rig) {
    const body = someBytes(20_000_000)
    const url = await guardFolder(rig, folder => writeFileSync(join(folder, 'large'), body))
    const folder = rig.folder()
    // eight ranges at a time
    await runProgram('aria2c', ['-q', '-x8', '-s8', '-k1M', '-d', folder, '-o', 'back', `${url}/large`])
    expect(sha256(readFileSync(join(folder, 'back')))).toBe(sha256(body))
  },
}

const npm: Client = {
  name: 'npm',
  isInstalledBySetUp: true,
  version: () => versionOf('npm'),
  async use(rig) {
    const folder = rig.folder()
    const made = join(folder, 'made')
    mkdirSync(made)
    writeFileSync(join(made, 'package.json'), JSON.stringify({ name: 'some-package', version: '1.0.0' }))
    writeFileSync(join(made, 'large.bin'), someBytes(500_000))
    const home = {
      npm_config_cache: join(folder, 'cache'),
      npm_config_userconfig: join(folder, 'npmrc'),
      npm_config_update_notifier: 'false',
    }
    await runProgram('npm', ['pack', '--silent'], { cwd: made, env: home })
    const tarball = readFileSync(join(made, 'some-package-1.0.0.tgz'))
    let published: Buffer | undefined
    let own = ''
    // the answers name the registry by the Host that it was called by
    const { url: to } = await rig.serve((incoming, response) => {
      if (incoming.method === 'PUT') {
        const pieces: Buffer[] = []
        incoming
          .on('data', piece => pieces.push(piece))
          .on('end', () => {
            published = Buffer.concat(pieces)
            response.writeHead(201, { 'content-type': 'application/json' }).end('{"ok":true}')
          })
        return
      }
      own = `http://${incoming.headers.host}`
      if (incoming.url?.endsWith('.tgz')) response.end(tarball)
      else {
        const dist = {
          tarball: `${own}/some-package/-/some-package-1.0.0.tgz`,
          shasum: createHash('sha1').update(tarball).digest('hex'),
        }
        const version = { name: 'some-package', version: '1.0.0', dist }
        response.setHeader('content-type', 'application/json')
        response.end(
          JSON.stringify({ name: 'some-package', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
        )
      }
    })
    const { url, port } = await rig.guard({ gateway: { routes: [{ to }] } })
    writeFileSync(join(folder, 'npmrc'), `//127.0.0.1:${port}/:_authToken=token\n`)
    const into = join(folder, 'into')
    mkdirSync(into)
    writeFileSync(join(into, 'package.json'), '{}')
    await runProgram('npm', ['install', '--silent', '--no-audit', '--registry', url, 'some-package'], {
      cwd: into,
      env: home,
    })
    expect(readFileSync(join(into, 'node_modules/some-package/large.bin')).equals(someBytes(500_000))).toBe(true)
    expect(own).toBe(url)
    writeFileSync(join(made, 'package.json'), JSON.stringify({ name: 'some-package', version: '1.0.1' }))
    await runProgram('npm', ['publish', '--silent', '--registry', url], { cwd: made, env: home })
    expect(JSON.parse(String(published))).toMatchObject({ name: 'some-package', 'dist-tags': { latest: '1.0.1' } })
  },
}

const pip: Client = {
  name: 'pip',
  isInstalledBySetUp: false,
  version: () => versionOf('python3', ['-m', 'pip', '--version']),
  async use(rig) {
    const folder = rig.folder()
    const script = [
      'import sys, zipfile',
      'with zipfile.ZipFile(sys.argv[1], "w") as wheel:',
      '    wheel.writestr("some_package.py", "x = 1\\n")',
      '    info = "some_package-1.0.dist-info/"',
      '    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: some-package\\nVersion: 1.0\\n")',
      '    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")',
      '    wheel.writestr(info + "RECORD", "")',
    ]
    const name = 'some_package-1.0-py3-none-any.whl'
    await runProgram('python3', ['-c', script.join('\n'), join(folder, name)])
    const url = await guardFolder(rig, files => {
      mkdirSync(join(files, 'simple/some-package'), { recursive: true })
      writeFileSync(
        join(files, 'simple/some-package/index.html'),
        `<!doctype html><a href="/files/${name}">${name}</a>`,
      )
      mkdirSync(join(files, 'files'))
      writeFileSync(join(files, 'files', name), readFileSync(join(folder, name)))
    })
    const args = [
      'install',
      '-q',
      '--no-cache-dir',
      '--disable-pip-version-check',
      '--isolated',
      '--target',
      join(folder, 'into'),
    ]
    await runProgram('python3', ['-m', 'pip', ...args, '--index-url', `${url}/simple`, 'some-package'])
    expect(readFileSync(join(folder, 'into/some_package.py'), 'utf8')).toBe('x = 1\n')
  },
}

const apt: Client = {
  name: 'apt',
  isInstalledBySetUp: false,
  version: () => versionOf('apt-get'),
  async use(rig) {
    const folder = rig.folder()
    const lists = join(folder, 'lists')
    for (const name of ['lists/partial', 'cache/archives/partial', 'etc', 'state'])
      mkdirSync(join(folder, name), { recursive: true })
    const url = await guardFolder(rig, files => {
      writeFileSync(
        join(files, 'Packages'),
        'Package: some-package\nVersion: 1.0\nArchitecture: all\nFilename: some.deb\nSize: 1\nSHA256: 0\n\n',
      )
    })
    writeFileSync(join(folder, 'sources.list'), `deb [trusted=yes] ${url} ./\n`)
    const options = [
      ['Dir::Etc::sourcelist', join(folder, 'sources.list')],
      ['Dir::Etc::sourceparts', '-'],
      ['Dir::State', join(folder, 'state')],
      ['Dir::State::lists', lists],
      ['Dir::Cache', join(folder, 'cache')],
      ['APT::Sandbox::User', 'root'],
      ['Acquire::Languages', 'none'],
      ['Acquire::AllowInsecureRepositories', 'true'],
      ['Acquire::http::Proxy', 'false'],
    ].flatMap(([name, value]) => ['-o', `${name}=${value}`])
    await runProgram('apt-get', [...options, 'update', '-qq'])
    expect(await runProgram('apt-cache', [...options, 'show', 'some-package'])).toContain('Version: 1.0')
  },
}

const webdav: Client = {
  name: 'WebDAV (curl)',
  isInstalledBySetUp: true,
  version: () => versionOf('curl'),
  async use(rig) {
    const methods: string[] = []
    const { url: to } = await rig.serve((incoming, response) => {
      methods.push(`${incoming.method} ${incoming.headers.depth ?? incoming.headers.destination ?? ''}`.trim())
      incoming
        .resume()
        .on('end', () =>
          response.writeHead(207, { 'content-type': 'application/xml', dav: '1, 2' }).end('<multistatus/>'),
        )
    })
    const { url } = await rig.guard({ gateway: { routes: [{ to }] } })
    const send = (...args: string[]): Promise<string> => runProgram('curl', ['-sSf', ...args, `${url}/a`])
    await send('-X', 'PROPFIND', '-H', 'Depth: 1', '-d', '<propfind/>')
    for (const method of ['MKCOL', 'LOCK', 'UNLOCK', 'PROPPATCH', 'REPORT', 'SEARCH', 'OPTIONS'])
      await send('-X', method)
    await send('-X', 'MOVE', '-H', `Destination: ${url}/b`)
    expect([methods[0], methods.at(-1), methods.length]).toEqual(['PROPFIND 1', `MOVE ${url}/b`, 9])
  },
}

/** Programs that download, upload and synchronize. */
export const programClients: readonly Client[] = [curl, git, python, requests, java, go, aria2c, npm, pip, apt, webdav]
