import { adminTokenGuesses } from './admin-token-guesses.mjs'
import { connectionFlood } from './connection-flood.mjs'
import { largeBodies } from './large-bodies.mjs'
import { loginGuesses } from './login-guesses.mjs'
import { oddVersions } from './odd-versions.mjs'
import { oneCallerFillsQueue } from './one-caller-fills-queue.mjs'
import { optionsAsterisk } from './options-asterisk.mjs'
import { pathSpellings } from './path-spellings.mjs'
import { pipelinedThenGone } from './pipelined-then-gone.mjs'
import { reasonPhrases } from './reason-phrases.mjs'
import { slowBodies } from './slow-bodies.mjs'
import { slowHeaders } from './slow-headers.mjs'
import { slowReaders } from './slow-readers.mjs'
import { expectThenReset, rapidReset } from './stream-resets.mjs'
import { unknownHmacKeys } from './unknown-hmac-keys.mjs'
import { unreadableQuestions } from './unreadable-questions.mjs'
import { upgradeBehindCall } from './upgrade-behind-call.mjs'

/** Every attack, in the order in which they run. See attack.mjs for what one is. */
export const attacks = [
  slowHeaders,
  slowBodies,
  slowReaders,
  largeBodies,
  connectionFlood,
  optionsAsterisk,
  pipelinedThenGone,
  upgradeBehindCall,
  reasonPhrases,
  pathSpellings,
  adminTokenGuesses,
  unknownHmacKeys,
  oddVersions,
  expectThenReset,
  rapidReset,
  oneCallerFillsQueue,
  loginGuesses,
  unreadableQuestions,
]
