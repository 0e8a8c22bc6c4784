package oal.stream.codec;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/** Strict UTF-8 of the wire. */
final class Text {
    private final CharsetDecoder strict =
            StandardCharsets.UTF_8.newDecoder().onMalformedInput(CodingErrorAction.REPORT)
                    .onUnmappableCharacter(CodingErrorAction.REPORT);

    String decode(byte[] data, int from, int to, String what) throws RefusedException {
        boolean ascii = true;
        for (int i = from; i < to && ascii; i++) ascii = data[i] >= 0;
        if (ascii) return new String(data, from, to - from, StandardCharsets.ISO_8859_1);
        try {
            return strict.decode(ByteBuffer.wrap(data, from, to - from)).toString();
        } catch (CharacterCodingException e) {
            throw RefusedException.malformed("header." + what + " is not UTF-8");
        }
    }
}
