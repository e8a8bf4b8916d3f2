"""Takes pictures: writes the number of each to stdout, 4 bytes."""
import sys
import time

import video
from video import PictureStep

for n in range(int(sys.argv[1])):
    video.picture_step(PictureStep.taken, n=n)
    picture = n.to_bytes(4, sys.byteorder)
    if video.on():
        video.sent(picture=video.hash(picture))
    sys.stdout.buffer.write(picture)
    sys.stdout.buffer.flush()
    time.sleep(0.001)
